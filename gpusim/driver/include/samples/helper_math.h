// The arithmetic of CUDA's samples: the same as for kernels that are compiled alone.
#pragma once
#include "../../../sass/include/helper_math.h"
