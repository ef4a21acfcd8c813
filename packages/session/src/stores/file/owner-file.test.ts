import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { expect, test, vi } from 'vitest'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { announceOwner, livingOwner } from './owner-file.ts'

const path = '/root/owner.json'

async function ownerOf(owner?: { host: string; process: string }, isHeldHere = false): Promise<string | undefined> {
  const disk = new MemoryDisk()
  disk.makeFolder('/root')
  if (owner) await announceOwner(disk, path, owner)
  return (await livingOwner(disk, path, () => isHeldHere))?.process
}

test('a session without an owner file has no owner', async () => {
  expect(await ownerOf()).toBeUndefined()
})

test('a running local process is alive, and an ended one is not', async () => {
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] })
  const owner = { host: hostname(), process: String(child.pid) }
  expect(await ownerOf(owner)).toBe(owner.process)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await ownerOf(owner)).toBeUndefined()
})

test('a process of another user is alive', async () => {
  const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('not permitted'), { code: 'EPERM' })
  })
  expect(await ownerOf({ host: hostname(), process: '1' })).toBe('1')
  kill.mockRestore()
})

test('our own process id counts only while we hold the lock: an earlier process may have had it', async () => {
  const owner = { host: hostname(), process: String(process.pid) }
  expect(await ownerOf(owner, true)).toBe(owner.process)
  expect(await ownerOf(owner, false)).toBeUndefined()
})

test('a process on another machine, or an unreadable owner, counts as alive', async () => {
  expect(await ownerOf({ host: 'elsewhere', process: '7' })).toBe('7')
  const disk = new MemoryDisk()
  disk.makeFolder('/root')
  const fd = disk.create(path)
  disk.write(fd, Buffer.from('{'))
  disk.close(fd)
  expect(await livingOwner(disk, path, () => false)).toEqual({ reason: 'Another process is writing this session.' })
})
