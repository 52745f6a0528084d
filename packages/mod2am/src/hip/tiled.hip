// HIP compiles it, too. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "../cuda/tiled.cu"
