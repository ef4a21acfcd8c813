import * as fs from 'node:fs'
import { watch } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FilePort } from './file-port.ts'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = fs.constants
const fdatasync = promisify(fs.fdatasync)
const fsync = promisify(fs.fsync)
const rename = promisify(fs.rename)

export interface NodeFilePortOptions {
  platform?: NodeJS.Platform
  pause?: (ms: number) => Promise<unknown>
}

/** The file port on the real system. */
export function nodeFilePort(options: NodeFilePortOptions = {}): FilePort {
  const pause = options.pause ?? delay
  const isWindows = (options.platform ?? process.platform) === 'win32'
  // Windows does not have these flags.
  const noFollow = isWindows ? 0 : O_NOFOLLOW
  const careful = isWindows ? 0 : O_NOFOLLOW | O_NONBLOCK
  return {
    openAppend: (path) => openRegular(path, O_RDWR | O_APPEND | careful),
    openRead: (path) => openRegular(path, O_RDONLY | careful),
    create: (path) => fs.openSync(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | noFollow, 0o600),
    close: (fd) => fs.closeSync(fd),
    write: (fd, bytes) => fs.writeSync(fd, bytes),
    size: (fd) => fs.fstatSync(fd).size,
    truncate: (fd, size) => fs.ftruncateSync(fd, size),
    read: (fd, bytes, position) =>
      new Promise((resolve, reject) => {
        fs.read(fd, bytes, 0, bytes.length, position, (error, count) => (error ? reject(error) : resolve(count)))
      }),
    dataSync: (fd) => fdatasync(fd),
    // Windows cannot sync folders; its file systems order the rename themselves.
    syncFolder: async (path) => {
      if (!isWindows) await syncPath(path)
    },
    rename: (from, to) => (isWindows ? renamePatiently(from, to, pause) : rename(from, to)),
    makeFolder: (path) => void fs.mkdirSync(path, { recursive: true, mode: 0o700 }),
    names: (path) => (fs.existsSync(path) ? fs.readdirSync(path) : []),
    exists: (path) => fs.existsSync(path),
    remove: (path) => fs.rmSync(path, { recursive: true, force: true }),
    changed,
  }
}

/** Opening a pipe would block until its other end opens, and a folder opens as if it were readable. */
function openRegular(path: string, flags: number): number {
  const fd = fs.openSync(path, flags)
  if (fs.fstatSync(fd).isFile()) return fd
  fs.closeSync(fd)
  throw new Error(`${path} is not a regular file`)
}

async function syncPath(path: string): Promise<void> {
  const fd = fs.openSync(path, O_RDONLY)
  try {
    await fsync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** On Windows a virus scanner may hold the target briefly. */
async function renamePatiently(from: string, to: string, pause: (ms: number) => Promise<unknown>): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += renameRetryMs) {
    try {
      return await rename(from, to)
    } catch (error) {
      if (waitedMs >= renamePatienceMs) throw error
      await pause(renameRetryMs)
    }
  }
}

const renameRetryMs = 50
const renamePatienceMs = 2000

async function changed(path: string, signal: AbortSignal): Promise<void> {
  try {
    // Watches the folder, which also reports a new file under the same name.
    for await (const event of watch(dirname(path), { signal })) if (event.filename === basename(path)) return
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
