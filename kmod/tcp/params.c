// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parameters of the TCP transport.
 */
#include <linux/module.h>

#include "tcp/tcp.h"

unsigned int swc_tcp_rx_bufs = 16;
module_param_named(tcp_rx_bufs, swc_tcp_rx_bufs, uint, 0444);
MODULE_PARM_DESC(tcp_rx_bufs, "receive buffers per TCP connection, 4 to 1024 (default 16)");

unsigned int swc_tcp_rx_buf_kib = 64;
module_param_named(tcp_rx_buf_kib, swc_tcp_rx_buf_kib, uint, 0444);
MODULE_PARM_DESC(tcp_rx_buf_kib, "payload of such a receive buffer in KiB, 4 to 1024 (default 64)");

unsigned int swc_tcp_port = 18575;
module_param_named(tcp_port, swc_tcp_port, uint, 0444);
MODULE_PARM_DESC(tcp_port, "port that other nodes connect to by TCP (default 18575)");

unsigned int swc_tls_port = 18576;
module_param_named(tls_port, swc_tls_port, uint, 0444);
MODULE_PARM_DESC(tls_port, "port that other nodes connect to by encrypted TCP (default 18576)");

unsigned int swc_tcp_timeout_ms = 8000;
module_param_named(tcp_timeout_ms, swc_tcp_timeout_ms, uint, 0444);
MODULE_PARM_DESC(tcp_timeout_ms, "milliseconds without an ACK after which a peer is given up, 100 to 600000 (default 8000)");

unsigned int swc_tcp_zerocopy_min = 32 << 10;
module_param_named(tcp_zerocopy_min, swc_tcp_zerocopy_min, uint, 0444);
MODULE_PARM_DESC(tcp_zerocopy_min, "messages of so many bytes are sent from where they lie (default 32768)");

unsigned int swc_tcp_resume_ms = 5000;
module_param_named(tcp_resume_ms, swc_tcp_resume_ms, uint, 0444);
MODULE_PARM_DESC(tcp_resume_ms, "milliseconds in which a connection must continue on another path, 100 to 600000 (default 5000)");

int swc_tcp_check_parameters(void)
{
	return swc_param_check("tcp_port", swc_tcp_port, 1, U16_MAX) ?:
	       swc_param_check("tls_port", swc_tls_port, 1, U16_MAX) ?:
	       swc_param_check("tcp_rx_bufs", swc_tcp_rx_bufs, SWC_WIRE_MIN_RX_BUFS, SWC_WIRE_MAX_RX_BUFS) ?:
	       swc_param_check("tcp_rx_buf_kib", swc_tcp_rx_buf_kib, SWC_WIRE_MIN_RX_BUF >> 10,
			       SWC_WIRE_MAX_RX_BUF >> 10) ?:
	       swc_param_check("tcp_timeout_ms", swc_tcp_timeout_ms, 100, 600000) ?:
	       swc_param_check("tcp_resume_ms", swc_tcp_resume_ms, 100, 600000) ?:
	       swc_param_check("tcp_zerocopy_min", swc_tcp_zerocopy_min, 1, U32_MAX);
}
