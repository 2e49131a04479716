// Names that nvcc has from the host's compiler and library, for source that uses them undeclared.
#pragma once
#include <cfloat>
#include <climits>
#include <cstdint>
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#ifndef __FLT_MAX__
#define __FLT_MAX__ FLT_MAX
#define __FLT_MIN__ FLT_MIN
#define __FLT_EPSILON__ FLT_EPSILON
#define __DBL_MAX__ DBL_MAX
#define __DBL_MIN__ DBL_MIN
#define __DBL_EPSILON__ DBL_EPSILON
#endif
#ifndef __INT_MAX__
#define __INT_MAX__ 2147483647
#endif
