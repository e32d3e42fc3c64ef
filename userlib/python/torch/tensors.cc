// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tensors as memory, and types and operations as the library's. */
#include <cstring>
#include <stdexcept>
#include <string>

#include "tensors.h"

namespace swingcoll_torch
{

static std::invalid_argument wrong(const char *name, const std::string &text)
{
	return std::invalid_argument(std::string("swingcoll: ") + name + ": " + text);
}

void check_tensor(const at::Tensor &tensor, const char *name)
{
	if (tensor.layout() != at::kStrided)
		throw wrong(name, "sparse tensors are not supported: pass tensor.to_dense()");
	if (!tensor.device().is_cpu())
		throw wrong(name,
			    "the tensor is on " + tensor.device().str() + ": pass tensor.cpu()");
	/* Its memory is not what it stands for. From others, contiguous() makes a copy that is. */
	if (tensor.is_contiguous() && (tensor.is_conj() || tensor.is_neg()))
		throw wrong(name, "the tensor is a view that conjugates or negates: pass "
				  "tensor.resolve_conj().resolve_neg()");
}

at::Tensor &only(Tensors &tensors, const char *name)
{
	if (tensors.size() != 1)
		throw wrong(name, "takes one tensor, not " + std::to_string(tensors.size()));
	check_tensor(tensors[0], name);
	return tensors[0];
}

void check_alike(const Tensors &tensors, const at::Tensor &model, const char *name)
{
	for (const at::Tensor &tensor : tensors)
		if (tensor.numel() != model.numel() || tensor.scalar_type() != model.scalar_type())
			throw wrong(name, "inputs and outputs must have the same size and type");
}

/* -1: no type of the library. */
static int dtype_of(at::ScalarType type)
{
	switch (type) {
	case at::kChar:
		return SWINGCOLL_I8;
	case at::kByte:
	case at::kBool:
		return SWINGCOLL_U8;
	case at::kShort:
		return SWINGCOLL_I16;
	case at::kInt:
		return SWINGCOLL_I32;
	case at::kLong:
		return SWINGCOLL_I64;
	case at::kHalf:
		return SWINGCOLL_F16;
	case at::kBFloat16:
		return SWINGCOLL_BF16;
	case at::kFloat:
	case at::kComplexFloat:
		return SWINGCOLL_F32;
	case at::kDouble:
	case at::kComplexDouble:
		return SWINGCOLL_F64;
	default:
		return -1;
	}
}

/* -1: no operation of the library. bool has the values 0 and 1, so that sums and products are those of logic. */
static int redop_of(const c10d::ReduceOp &op, bool logical)
{
	switch (op) {
	case c10d::ReduceOp::SUM:
		return logical ? SWINGCOLL_BOR : SWINGCOLL_SUM;
	case c10d::ReduceOp::PRODUCT:
		return logical ? SWINGCOLL_BAND : SWINGCOLL_PROD;
	case c10d::ReduceOp::AVG:
		return logical ? -1 : SWINGCOLL_AVG;
	case c10d::ReduceOp::MIN:
		return SWINGCOLL_MIN;
	case c10d::ReduceOp::MAX:
		return SWINGCOLL_MAX;
	case c10d::ReduceOp::BAND:
		return SWINGCOLL_BAND;
	case c10d::ReduceOp::BOR:
		return SWINGCOLL_BOR;
	case c10d::ReduceOp::BXOR:
		return SWINGCOLL_BXOR;
	default:
		return -1;
	}
}

Reduction reduction_of(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *name)
{
	int dtype = dtype_of(tensor.scalar_type());
	int redop = redop_of(op, tensor.scalar_type() == at::kBool);
	size_t count = static_cast<size_t>(tensor.numel());
	bool good = dtype >= 0 && redop >= 0;

	if (good && tensor.is_complex()) {
		good = redop == SWINGCOLL_SUM || redop == SWINGCOLL_AVG;
		count *= 2;
	}
	good = good &&
	       swingcoll_supported((enum swingcoll_dtype)dtype, (enum swingcoll_redop)redop);
	if (!good)
		throw wrong(name, std::string("this reduction is not defined for ") +
					  c10::toString(tensor.scalar_type()));
	return { (enum swingcoll_dtype)dtype, (enum swingcoll_redop)redop, count };
}

/* ---- joined ---- */

static bool are_neighbours(const Tensors &parts)
{
	char *next = static_cast<char *>(parts[0].data_ptr());

	for (const at::Tensor &part : parts) {
		if (!part.is_contiguous() || (part.nbytes() && part.data_ptr() != next))
			return false;
		next += part.nbytes();
	}
	return true;
}

Joined::Joined(const Tensors &parts, const char *name) : parts(parts)
{
	if (parts.empty())
		throw wrong(name, "the list of tensors is empty");
	for (const at::Tensor &part : parts) {
		check_tensor(part, name);
		bytes += part.nbytes();
	}
	if (!are_neighbours(parts))
		joined = at::empty({ static_cast<int64_t>(bytes) }, at::kByte);
}

void *Joined::data() const
{
	return joined.defined() ? joined.data_ptr() : parts[0].data_ptr();
}

void Joined::load()
{
	char *to = static_cast<char *>(data());

	if (!joined.defined())
		return;
	for (const at::Tensor &part : parts) {
		at::Tensor tight = part.contiguous();

		memcpy(to, tight.data_ptr(), tight.nbytes());
		to += tight.nbytes();
	}
}

void Joined::store() const
{
	const char *from = static_cast<const char *>(data());

	if (!joined.defined())
		return;
	for (const at::Tensor &part : parts) {
		at::Tensor tight = part.is_contiguous()
					   ? part
					   : at::empty(part.sizes(), part.scalar_type());

		memcpy(tight.data_ptr(), from, tight.nbytes());
		if (!tight.is_same(part))
			part.copy_(tight);
		from += tight.nbytes();
	}
}

} // namespace swingcoll_torch
