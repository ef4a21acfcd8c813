import { expect, test } from 'vitest'
import { actsIn } from './acts.ts'

const mayWriteIn = '/store'

test.each([
  'openat(AT_FDCWD</repository>, "settings.json", O_RDONLY|O_CLOEXEC) = 21</repository/settings.json>',
  'openat(AT_FDCWD</repository>, "/dev/null", O_RDWR) = 3</dev/null>',
  'openat(AT_FDCWD</repository>, "/store/a/log.jsonl", O_WRONLY|O_CREAT|O_APPEND, 0600 <unfinished ...>',
  'renameat(AT_FDCWD</store>, "a.tmp", AT_FDCWD</store>, "a") = 0',
  'unlinkat(5</store/a>, "b", 0) = 0',
  'ftruncate(22</store/a/log.jsonl>, 100) = 0',
  '<... openat resumed>) = 22</store/a>',
])('is no act: %s', (call) => {
  expect(actsIn([`12 ${call}`], { mayWriteIn })).toEqual([])
})

test.each([
  'execve("/usr/bin/git", ["git", "status"], 0x1 /* 3 vars */) = 0',
  'connect(19<socket:[1]>, {sa_family=AF_INET, sin_port=htons(9)}, 16) = -1',
  'openat(AT_FDCWD</repository>, "written", O_WRONLY|O_CREAT, 0666) = 21',
  'openat(AT_FDCWD</store>, "../repository/written", O_WRONLY|O_CREAT, 0666) = 21',
  'openat(AT_FDCWD</repository>, "/stores/written", O_RDWR) = 21',
  'rename("/store/a", "/repository/a") = 0',
  'link("/repository/a", "/store/a") = 0',
  'ftruncate(22</repository/a>, 100) = 0',
  'unlinkat(5</repository>, "b", 0) = 0',
])('is an act: %s', (call) => {
  expect(actsIn([`12 ${call}`], { mayWriteIn })).toEqual([`12 ${call}`])
})
