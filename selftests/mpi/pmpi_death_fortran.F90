! SPDX-License-Identifier: GPL-2.0-only
!
! As pmpi_death.c with a persistent request, in Fortran; compiled three times, as pmpi_fortran.F90. The last rank dies. The
! survivors' request fails, then and whenever it is started again, and each function that completes requests must tell so.
#ifdef USE_F08
#define REQUEST type(MPI_Request)
#define STATUSES type(MPI_Status) :: statuses(3)
#define ERROR_OF(i) statuses(i)%MPI_ERROR
#else
#define REQUEST integer
#define STATUSES integer :: statuses(MPI_STATUS_SIZE, 3)
#define ERROR_OF(i) statuses(MPI_ERROR, i)
#endif
#ifdef MPIX
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif
program pmpi_death_fortran
#if defined(USE_F08)
  use mpi_f08
#ifdef MPIX
  use mpi_f08_ext
#endif
#elif defined(USE_MPI)
  use mpi
#endif
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
#if !defined(USE_F08) && !defined(USE_MPI)
  include 'mpif.h'
#endif
  interface
    integer(c_int) function c_raise(number) bind(C, name='raise')
      import c_int
      integer(c_int), value :: number
    end function
    subroutine c_exit(status) bind(C, name='_exit')
      import c_int
      integer(c_int), value :: status
    end subroutine
  end interface
  integer :: rank, nranks, error, i, died, number
  integer, asynchronous :: total
  logical :: good = .true.
  ! The second one is it; the others are none.
  REQUEST :: requests(3)
  STATUSES

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, error)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  do i = 1, 20
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  requests = MPI_REQUEST_NULL
  call ALLREDUCE_INIT(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
  call check(error == MPI_SUCCESS, 'made')
  do i = 1, 9
    total = 0
    call complete(i, error)
    call check(error == MPI_SUCCESS .and. total == nranks*(nranks - 1)/2, 'before')
  end do
  if (rank == nranks - 1) number = c_raise(9)
  call complete(1, error)
  call MPI_Error_class(error, died, number)
  ! MPICH's is MPIX_ERR_PROC_FAILED, which Fortran does not know.
  call check(died /= MPI_SUCCESS .and. died /= MPI_ERR_IN_STATUS .and. died /= MPI_ERR_TRUNCATE, 'class')
  do i = 1, 9
    call complete(i, error)
    call check(error == died, 'after')
  end do
  call MPI_Request_free(requests(2), error)
  call check(error == MPI_SUCCESS .and. requests(2) == MPI_REQUEST_NULL, 'freed')
  if (good) print '(a, i0, a)', 'survivor ', rank, ': error'
  flush (6)
  ! A launcher may end the others when one leaves: what they say must be out then.
  call PMPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, nranks - 1), 8, number, 1, MPI_INTEGER, &
                     mod(rank + nranks - 2, nranks - 1), 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call c_exit(merge(0, 1, good))
contains
  subroutine check(fine, what)
    logical, intent(in) :: fine
    character(*), intent(in) :: what
    if (.not. fine) then
      good = .false.
      print '(a, i0, 3a, 2i8)', 'survivor ', rank, ': wrong: ', what, ',', i, error
    end if
  end subroutine

  ! Of the functions for several requests, what the status says, if they say that one does.
  integer function error_in(result, place)
    integer, intent(in) :: result, place
    error_in = result
    if (result == MPI_SUCCESS) return
    error_in = MPI_ERR_INTERN
    if (result == MPI_ERR_IN_STATUS) error_in = ERROR_OF(place)
  end function

  subroutine complete(way, result)
    integer, intent(in) :: way
    integer, intent(out) :: result
    integer :: place, done, places(3)
    logical :: flag
    REQUEST :: before

    before = requests(2)
    flag = .false.
    place = 0
    done = 0
    call MPI_Start(requests(2), result)
    if (result /= MPI_SUCCESS) return
    select case (way)
    case (1)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, result)
    case (2)
      do while (.not. flag .and. result == MPI_SUCCESS)
        call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE, result)
      end do
    case (3)
      call MPI_Waitany(3, requests, place, MPI_STATUS_IGNORE, result)
    case (4)
      do while (.not. flag .and. result == MPI_SUCCESS)
        call MPI_Testany(3, requests, place, flag, MPI_STATUS_IGNORE, result)
      end do
    case (5)
      call MPI_Waitall(3, requests, statuses, result)
      result = error_in(result, 2)
    case (6)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE, result)
      if (result == MPI_ERR_IN_STATUS) result = died
    case (7)
      do while (.not. flag .and. result == MPI_SUCCESS)
        call MPI_Testall(3, requests, flag, statuses, result)
      end do
      result = error_in(result, 2)
    case (8)
      call MPI_Waitsome(3, requests, done, places, statuses, result)
      if (done == 1) place = places(1)
      result = error_in(result, 1)
    case (9)
      do while (done == 0 .and. result == MPI_SUCCESS)
        call MPI_Testsome(3, requests, done, places, statuses, result)
      end do
      if (done == 1) place = places(1)
      result = error_in(result, 1)
    end select
    ! MPICH's counts from zero here by mpi_f08, and otherwise says nothing after an error.
#ifdef MPIX
    if (way == 3 .or. way == 4 .or. way >= 8) call check(place == 2, 'place')
#else
    if (result == MPI_SUCCESS .and. (way == 3 .or. way == 4 .or. way >= 8)) call check(place == 1 .or. place == 2, 'place')
#endif
    call check(before == requests(2), 'handle')
  end subroutine
end program
