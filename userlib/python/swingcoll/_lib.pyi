# SPDX-License-Identifier: LGPL-2.1-or-later
from typing import Any

ffi: Any
lib: Any  # the functions and constants of swingcoll.h and calls.h
