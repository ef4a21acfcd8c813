import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodeFilePort } from './node-file-port.ts'

describe('node file port', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tapetree-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  test('a file is created once, appended to, measured, read and cut', async () => {
    const port = nodeFilePort()
    const path = join(folder, 'file')
    const fd = port.create(path)
    expect(() => port.create(path)).toThrow(/EEXIST/)
    expect(port.write(fd, Buffer.from('hello world'))).toBe(11)
    port.truncate(fd, 5)
    expect(port.size(fd)).toBe(5)
    const bytes = new Uint8Array(10)
    expect(await port.read(fd, bytes, 1)).toBe(4)
    await port.dataSync(fd)
    port.close(fd)
    const again = port.openAppend(path)
    port.write(again, Buffer.from('!'))
    port.close(again)
    expect(readFileSync(path, 'utf8')).toBe('hello!')
    const reading = port.openRead(path)
    await expect(port.read(-1, bytes, 0)).rejects.toThrow(/out of range/)
    port.close(reading)
    await expect(port.read(reading, bytes, 0)).rejects.toThrow(/EBADF/)
  })

  test('folders are made with those above them, listed, synced and removed', async () => {
    const port = nodeFilePort()
    const path = join(folder, 'a', 'b')
    expect(port.names(path)).toEqual([])
    port.makeFolder(path)
    await port.syncFolder(path)
    await expect(port.syncFolder(join(folder, 'missing'))).rejects.toThrow(/ENOENT/)
    writeFileSync(join(path, 'c'), '')
    expect(port.names(path)).toEqual(['c'])
    port.remove(join(folder, 'a'))
    port.remove(join(folder, 'a'))
    expect(port.exists(path)).toBe(false)
  })

  test('where a folder cannot be synced, as on Windows, nothing is tried', async () => {
    await expect(nodeFilePort({ platform: 'win32' }).syncFolder(join(folder, 'missing'))).resolves.toBeUndefined()
  })

  test('a rename that Windows refuses for a moment is tried again', async () => {
    const from = join(folder, 'from')
    const to = join(folder, 'busy', 'to')
    writeFileSync(from, 'content')
    const pauses: number[] = []
    const port = nodeFilePort({
      platform: 'win32',
      pause: async (ms) => {
        pauses.push(ms)
        if (pauses.length === 3) mkdirSync(join(folder, 'busy'))
      },
    })
    await port.rename(from, to)
    expect(existsSync(to)).toBe(true)
    expect(pauses).toEqual([50, 50, 50])
  })

  test('a rename that stays refused fails after two seconds of trying', async () => {
    let waitedMs = 0
    const port = nodeFilePort({
      platform: 'win32',
      pause: async (ms) => {
        waitedMs += ms
      },
    })
    await expect(port.rename(join(folder, 'a'), join(folder, 'b'))).rejects.toThrow(/ENOENT/)
    expect(waitedMs).toBe(2000)
  })

  test('elsewhere a rename is tried once', async () => {
    await expect(nodeFilePort({ platform: 'linux' }).rename(join(folder, 'a'), join(folder, 'b'))).rejects.toThrow(
      /ENOENT/,
    )
  })

  test('a file that grows wakes who waits for it, and others do not', async () => {
    const port = nodeFilePort()
    const stop = new AbortController()
    const changed = port.changed(join(folder, 'log'), stop.signal)
    writeFileSync(join(folder, 'other'), 'x')
    writeFileSync(join(folder, 'log'), 'x')
    await changed
    const aborted = port.changed(join(folder, 'log'), stop.signal)
    stop.abort()
    await expect(aborted).resolves.toBeUndefined()
  })

  test('waiting for a file in a folder that is not there fails', async () => {
    await expect(nodeFilePort().changed(join(folder, 'no', 'log'), new AbortController().signal)).rejects.toThrow(
      /ENOENT/,
    )
  })
})
