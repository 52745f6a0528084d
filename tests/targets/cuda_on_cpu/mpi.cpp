// An MPI that reaches devices' memory, over one that does not. SPDX-License-Identifier: Apache-2.0
// OR MIT
//
// Only where $CUDA_ON_CPU_MPI is set. Messages are copied from and to the devices here, with all
// checks of copies: what MPI is told must lie in an allocation.
#include "cuda_runtime_api.h"

#include <cstdlib>
#include <mpi.h>
#include <vector>

extern "C" {

int MPIX_Query_cuda_support(void) {
    return getenv("CUDA_ON_CPU_MPI") != nullptr;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void *receive, int receive_count, MPI_Datatype receive_type, int from,
                 int receive_tag, MPI_Comm ranks, MPI_Status *status) {
    int send_size, receive_size;
    if (!MPIX_Query_cuda_support())
        return PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                             receive_type, from, receive_tag, ranks, status);
    MPI_Type_size(send_type, &send_size);
    MPI_Type_size(receive_type, &receive_size);
    std::vector<char> goes(static_cast<size_t>(send_count) * static_cast<size_t>(send_size));
    std::vector<char> comes(static_cast<size_t>(receive_count) * static_cast<size_t>(receive_size));
    cudaMemcpy(goes.data(), send, goes.size(), cudaMemcpyDefault);
    const int result = PMPI_Sendrecv(goes.data(), send_count, send_type, to, send_tag, comes.data(),
                                     receive_count, receive_type, from, receive_tag, ranks, status);
    cudaMemcpy(receive, comes.data(), comes.size(), cudaMemcpyDefault);
    return result;
}
}
