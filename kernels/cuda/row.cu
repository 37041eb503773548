#include "kernels/cuda/row_tensor.inl"
//
#include "kernels/cuda/device.cuh"

namespace lethe {

const cuda_row cuda = device::row_on<device::gpu>("cuda");
const cuda_row cuda_tensor = device::tensor_row_on<device::gpu>("cuda_tensor");

}  // namespace lethe
