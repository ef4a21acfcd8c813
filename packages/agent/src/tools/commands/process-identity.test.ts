import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { currentBootId, isRunning, ownIdentity, type ProcessIdentity } from './process-identity.ts'
import { readProcess } from './process-table.ts'

test('this process is running', () => {
  expect(isRunning(ownIdentity())).toBe(true)
})

test('a process is only the same if boot, number and start time all match', () => {
  const own = ownIdentity()
  expect(isRunning({ ...own, startTime: String(Number(own.startTime) + 1) })).toBe(false)
  expect(isRunning({ ...own, bootId: 'of another day' })).toBe(false)
  expect(isRunning({ ...own, pid: process.ppid })).toBe(false)
})

test('a process of which nothing is known is not running', () => {
  expect(isRunning({ bootId: '', pid: 0, startTime: '' })).toBe(false)
})

test('a process that has ended is not running, whether its parent has noticed or not', async () => {
  // The shell becomes a program that never asks for its child, so that the child stays as a zombie.
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
