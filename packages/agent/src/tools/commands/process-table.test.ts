import { expect, test } from 'vitest'
import {
  environmentOf,
  listProcesses,
  parsePs,
  parseStat,
  readProcess,
  currentBootId,
  isRunning,
  ownIdentity,
  type ProcessIdentity,
} from './process-table.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'

test('a process name with spaces and parentheses does not shift the fields', () => {
  const numbers = Array.from({ length: 40 }, (_, index) => index + 100).join(' ')
  expect(parseStat(`77 (a) b (c) S 5 6 7 ${numbers}`)).toEqual({
    pid: 77,
    parentId: 5,
    groupId: 6,
    sessionId: 7,
    isZombie: false,
    startTime: '115',
    name: 'a) b (c',
  })
})

test('a process that has ended and was not reaped is a zombie', () => {
  expect(parseStat(`1 (x) Z 0 0 0 ${'0 '.repeat(30)}`)).toMatchObject({ isZombie: true })
})

test('a malformed line is ignored', () => {
  expect(parseStat('')).toBeUndefined()
  expect(parseStat('1 (x) S 0')).toBeUndefined()
})

test('the output of ps is parsed on systems without /proc', () => {
  const table = [
    '    1     0     1 Ss   Fri Nov 13 08:00:01 2026     /sbin/launchd',
    '  812   700   812 Z    Sat Nov  7 21:05:59 2026     (node)',
  ].join('\n')
  expect(parsePs(table)).toEqual([
    {
      pid: 1,
      parentId: 0,
      groupId: 1,
      sessionId: 0,
      isZombie: false,
      startTime: 'Fri Nov 13 08:00:01 2026',
      name: 'launchd',
    },
    {
      pid: 812,
      parentId: 700,
      groupId: 812,
      sessionId: 0,
      isZombie: true,
      startTime: 'Sat Nov 7 21:05:59 2026',
      name: '(node)',
    },
  ])
})

test('this process is in the table with its parent and its environment', () => {
  const self = readProcess(process.pid)
  expect(self).toMatchObject({ pid: process.pid, parentId: process.ppid, isZombie: false })
  expect(listProcesses()).toContainEqual(self)
  expect(environmentOf(process.pid).some((variable) => variable.startsWith('PATH='))).toBe(true)
})

test('a missing process has no entry and no environment', () => {
  expect(readProcess(2 ** 22 + 1)).toBeUndefined()
  expect(environmentOf(2 ** 22 + 1)).toEqual([''])
})

test('this process is running', () => {
  expect(isRunning(ownIdentity())).toBe(true)
})

test('a process is the same only if boot, id and start time all match', () => {
  const own = ownIdentity()
  expect(isRunning({ ...own, startTime: String(Number(own.startTime) + 1) })).toBe(false)
  expect(isRunning({ ...own, bootId: 'of another day' })).toBe(false)
  expect(isRunning({ ...own, pid: process.ppid })).toBe(false)
})

test('an unknown process is not running', () => {
  expect(isRunning({ bootId: '', pid: 0, startTime: '' })).toBe(false)
})

test('a process that has ended is not running, whether its parent has reaped it or not', async () => {
  // The shell becomes a program that never reaps its child, so that the child stays a zombie.
  const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 100'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(line.toString())
  await expect.poll(() => readProcess(pid)?.isZombie, { timeout: 20_000 }).toBe(true)
  const zombie: ProcessIdentity = { bootId: currentBootId(), pid, startTime: readProcess(pid)?.startTime ?? '' }
  expect(isRunning(zombie)).toBe(false)
  parent.kill('SIGKILL')
  await once(parent, 'exit')
  expect(isRunning({ ...zombie, pid: parent.pid ?? 0 })).toBe(false)
})
