! SPDX-License-Identifier: MIT
! All processes that a launcher has started add up a million numbers:
!   mpirun -n 4 allreduce_fortran    (or srun --mpi=pmix, or SWINGCOLL_ROOT and others: see swingcoll(7))
program allreduce
  use, intrinsic :: iso_c_binding, only: c_int, c_float, c_size_t
  use swingcoll
  implicit none
  integer, parameter :: n = 1024 * 1024
  real(c_float), target :: v(n)
  type(swingcoll_comm) :: comm

  call check(swingcoll_comm_create_auto(comm))
  v = real(swingcoll_comm_rank(comm) + 1, c_float)
  call check(swingcoll_allreduce(v, v, size(v, kind=c_size_t), SWINGCOLL_F32, SWINGCOLL_SUM, comm))
  print '(a, i0, a, g0, a)', 'rank ', swingcoll_comm_rank(comm), ': ', v(n), ' everywhere'
  call check(swingcoll_comm_destroy(comm))

contains

  subroutine check(error)
    integer(c_int), intent(in) :: error

    if (error == 0) return
    print '(a)', swingcoll_strerror(error), swingcoll_bootstrap_error()
    stop 1
  end subroutine check
end program allreduce
