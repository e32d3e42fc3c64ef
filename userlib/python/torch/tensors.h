// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tensors as memory. The library takes elements without gaps, in C order: other tensors go through a copy. Data that is only
 * moved goes as bytes, whatever its type.
 */
#ifndef SWINGCOLL_TORCH_TENSORS_H
#define SWINGCOLL_TORCH_TENSORS_H

#include <vector>

#include <swingcoll.h>

#include "compat.h"

namespace swingcoll_torch
{

using Tensors = std::vector<at::Tensor>;

/* Throw, in one line, if it is no dense tensor in host memory. */
void check_tensor(const at::Tensor &tensor, const char *name);
/* The only tensor of a list. */
at::Tensor &only(Tensors &tensors, const char *name);

/* Throw unless the tensors have as many elements as the model, of the same type. */
void check_alike(const Tensors &tensors, const at::Tensor &model, const char *name);

/* What a reduction of a tensor is to the library. */
struct Reduction {
	enum swingcoll_dtype dtype;
	enum swingcoll_redop op;
	size_t count;
};
/* Throws if there is no such reduction of these elements. */
Reduction reduction_of(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *name);

/*
 * A list of tensors as one piece of memory, one after the other. It is the tensors' own memory if they lie so, otherwise it
 * is a new one of bytes.
 */
class Joined
{
      public:
	Joined(const Tensors &parts, const char *name);
	/* Copy the tensors there, or back, if the memory is not their own. */
	void load();
	void store() const;

	void *data() const;

	const Tensors parts;
	size_t bytes = 0;

      private:
	at::Tensor joined; /* undefined: the memory is the parts' own */
};

} // namespace swingcoll_torch

#endif /* SWINGCOLL_TORCH_TENSORS_H */
