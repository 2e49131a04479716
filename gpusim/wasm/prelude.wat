;; The prelude of every module with objects: an allocator without free, and lists.

;; The word at address 8 is the first free address.
(memory (export "memory") 32)
(data (i32.const 8) "\00\04\00\00")

(func $allocate (param $size i32) (result i32) (local $at i32) (local $free i32)
  (local $missing i32)
  (local.set $at (i32.load (i32.const 8)))
  (local.set $free (i32.add (local.get $at) (local.get $size)))
  (i32.store (i32.const 8) (local.get $free))
  (local.set $missing (i32.sub (i32.shr_u (local.get $free) (i32.const 16)) (memory.size)))
  (if (i32.ge_s (local.get $missing) (i32.const 0))
    (then (if (i32.lt_s (memory.grow (i32.add (local.get $missing) (i32.const 256)))
                        (i32.const 0))
      (then (unreachable)))))
  (local.get $at))

;; A list: address of its elements, length, capacity.
(func $list (param $data i32) (result i32) (local $at i32)
  (local.set $at (call $allocate (i32.const 24)))
  (i32.store (local.get $at) (local.get $data))
  (i32.store offset=8 (local.get $at) (i32.const 0))
  (i32.store offset=16 (local.get $at) (i32.const 0))
  (local.get $at))

;; [item] * times, of whole numbers.
(func $filled (param $item i64) (param $times i64) (result i32)
  (local $list i32) (local $at i32) (local $end i32)
  (local.set $at (call $allocate (i32.shl (i32.wrap_i64 (local.get $times)) (i32.const 3))))
  (local.set $list (call $list (local.get $at)))
  (local.set $end (i32.add (local.get $at)
    (i32.shl (i32.wrap_i64 (local.get $times)) (i32.const 3))))
  (i32.store offset=8 (local.get $list) (i32.wrap_i64 (local.get $times)))
  (i32.store offset=16 (local.get $list) (i32.wrap_i64 (local.get $times)))
  (block $out (loop $again
    (br_if $out (i32.ge_u (local.get $at) (local.get $end)))
    (i64.store (local.get $at) (local.get $item))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br $again)))
  (local.get $list))

;; Make room for more elements of a size.
(func $grow (param $list i32) (param $size i32)
  (local $length i32) (local $capacity i32) (local $data i32)
  (local.set $length (i32.load offset=8 (local.get $list)))
  (local.set $capacity (i32.add (i32.const 8) (i32.mul (local.get $length) (i32.const 2))))
  (local.set $data (call $allocate (i32.mul (local.get $capacity) (local.get $size))))
  (memory.copy (local.get $data) (i32.load (local.get $list))
    (i32.mul (local.get $length) (local.get $size)))
  (i32.store (local.get $list) (local.get $data))
  (i32.store offset=16 (local.get $list) (local.get $capacity)))

(func $delete (param $list i32) (param $place i32) (param $size i32)
  (local $left i32) (local $at i32)
  (local.set $left (i32.sub (i32.load offset=8 (local.get $list)) (i32.const 1)))
  (if (i32.gt_u (local.get $place) (local.get $left)) (then (unreachable)))
  (if (i32.lt_s (local.get $left) (i32.const 0)) (then (unreachable)))
  (i32.store offset=8 (local.get $list) (local.get $left))
  (if (i32.eq (local.get $place) (local.get $left)) (then (return)))
  (local.set $at (i32.add (i32.load (local.get $list))
    (i32.mul (local.get $place) (local.get $size))))
  (memory.copy (local.get $at) (i32.add (local.get $at) (local.get $size))
    (i32.mul (i32.sub (local.get $left) (local.get $place)) (local.get $size))))
