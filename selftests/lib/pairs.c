// SPDX-License-Identifier: GPL-2.0-only
#include "pairs.h"
#include "testlib.h"

bool pairs_short(void)
{
	return testlib_env("SWC_TEST_SHORT", 0);
}

void pairs_init(struct pairs *p, unsigned int nfactors)
{
	memset(p, 0, sizeof(*p));
	p->all = !pairs_short();
	p->nfactors = nfactors;
}

bool pairs_due(struct pairs *p, const unsigned int *level)
{
	bool due = p->all;

	for (unsigned int f = 0; f < p->nfactors && !due; f++)
		for (unsigned int g = f + 1; g < p->nfactors && !due; g++)
			due = !(p->covered[f][g][level[f]] & 1u << level[g]);
	p->run += due;
	p->skipped += !due;
	return due;
}

void pairs_cover(struct pairs *p, const unsigned int *level)
{
	for (unsigned int f = 0; f < p->nfactors; f++)
		for (unsigned int g = f + 1; g < p->nfactors; g++)
			p->covered[f][g][level[f]] |= 1u << level[g];
}
