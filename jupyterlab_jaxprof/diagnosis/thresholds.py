"""Every threshold of the diagnosis, each with its reason. Shares are of the window unless said otherwise."""

from __future__ import annotations

#: Less than a tenth of the time is not worth a programmer's hour, and is within what a traced run differs
#: from one that isn't: a step of 11 ms that is blocked on loses 7 % to launching and waking up.
PROBLEM_SHARE = 0.10
#: What is seen directly (a compile, a callback, a copy that computing waits for) is worth knowing from here.
NOTE_SHARE = 0.02
#: What is hardly anything of the whole recording is no note, however much of a few steps it is.
LEAST_NOTE_SHARE = 0.01
#: A device that rests half of the time is the first thing to say; below a fifth it is the usual cost of
#: starting and ending steps.
IDLE_PROBLEM_SHARE = 0.50
IDLE_NOTE_SHARE = 0.20
#: From here on a device counts as well used, when nothing else is wrong either.
BUSY_ENOUGH_SHARE = 0.80
#: A recording of less, a single kernel say, is no ground to call anything well.
SHORTEST_JUDGED_NS = 1e6

#: 'In every step' means in so many of them: the first differs often, and so may one with an evaluation.
EVERY_STEP_SHARE = 0.8
#: Two steps don't make a habit.
FEWEST_STEPS = 3

#: Compiles of one function that lie within less of the window are those of a program that starts.
RECOMPILING_SPREAD_SHARE = 0.5

#: A function of a name that was compiled so often after the first is hardly several functions.
SURELY_AGAIN = 2

#: A name must cover so much of some time to stand for it; of those that cover nearly as much as the best,
#: the innermost tells most.
NAMING_SHARE = 0.3
INNERMOST_SHARE = 0.8
#: What is less of a whole than this isn't worth a sentence.
SMALL_PART = 0.1

#: Markers end early where the devices work on for so much of the window after the last.
EARLY_SHARE = 0.3
#: Of a single step it can't be told: what it started may as well be what ends its window.
FEWEST_EARLY = 2
#: A step is slow when it is so many times longer than the median one.
SLOW_STEP = 1.1

#: What host and driver need to wake up after the device has finished: mostly 0.1 to 0.6 ms, up to 1.4 ms were
#: measured. Silence of the host that outlasts the device by more is work that the trace does not show.
LONGEST_WAKE_NS = 2e6
#: And what it usually is: all that is counted where a copy to the host is the only sign of a wait.
USUAL_WAKE_NS = 0.3e6
#: Silence that began at least so many times earlier before the device's end than it ended after it is
#: waiting: work of the host that happens to end with the device's each time is far less likely.
WAIT_BEFORE_TO_AFTER = 2.0

#: A program of so few operations and so little device time is one operation dispatched by itself: XLA makes
#: one to three kernels of it, and dispatching costs the host 30 to 100 us, more than the device needs.
EAGER_OPS = 4
EAGER_DEVICE_NS = 20e3
#: So many of them in a step is 'many': below, dispatching costs under about half a millisecond.
EAGER_PER_STEP = 10
EAGER_IN_WINDOW = 30
EAGER_KINDS = 3
#: A pause before such an operation that is longer has another cause than its dispatch.
LONGEST_EAGER_GAP_NS = 1e6

#: A kernel this short takes less time than launching the next one (2 to 10 us each, 1 to 2 us in a graph).
TINY_KERNEL_NS = 10e3
#: So many operations in one run of a program can't be a small model any more: a loop, or no fusion.
MANY_OPS = 100
#: The same operation so many times in one run of a program is a loop.
LOOP_REPEATS = 10
#: Pauses between two operations of one program up to this are the device's own.
KERNEL_GAP_NS = 10e3

#: Scalars and shapes are copied in almost any step and cost a latency, not a bandwidth: data starts here.
DATA_BYTES_PER_STEP = 16 * 1024
#: Copies of which so much runs beside computing are hidden.
HIDDEN_COPY_SHARE = 0.5
#: A value that `float`, `print` or `if` reads: a scalar or a few of them.
SCALAR_BYTES = 256

#: What is smaller than an array of some hundred numbers costs a dispatch, and shows nothing of a buffer.
LEAST_ARRAY_BYTES = 1024
#: JAX fills the pinned buffer for a copy at 5 to 11 GB/s on the machines measured. A rest right before a copy
#: that is no longer than this slowest speed allows is that, where the recording doesn't show it; a longer one
#: is something else. Of smaller copies it can't be told.
SLOWEST_STAGING_BYTES_PER_S = 3e9
LEAST_STAGED_BYTES = 1 << 20

#: So few bytes are exchanged in some 10 us over NVLink, and in 100 us over a network: where collectives of
#: them cost time, a device waits for the others.
TINY_COLLECTIVE_BYTES = 64 * 1024

#: The allocator needs room for what a step needs at once and can't move what it has given: from about
#: here the next larger batch, or fragmentation, ends in RESOURCE_EXHAUSTED.
MEMORY_SHARE = 0.85

#: Devices that compute so much longer than the mean hold the others up.
UNEVEN_SHARE = 0.10
#: A device for which so much of the waiting at collectives is, is the slow one.
LAST_SHARE = 0.75

#: The Python tracer takes about this much for one call that it records: entry and exit, each through
#: `sys.setprofile` (0.3 to 0.5 us each on the machines measured).
PYTHON_CALL_COST_NS = 700.0

#: How many findings, ranges and rows are worth showing.
RANGES = 5
SLOWEST = 5
ROWS = 30
LANE_INTERVALS = 300
DRAWN_GAPS = 12
