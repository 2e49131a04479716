// The helpers of CUDA's samples together.
#pragma once
#include <cassert>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "helper_string.h"
#include "helper_timer.h"
