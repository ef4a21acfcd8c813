import type { FilePort } from '@tapetree/session/stores/file'

interface WatchedLog {
  path: string
  /** Written, but not known to be on disk. */
  pending: string
  written: number
  synced: number
}

/** Knows which lines of each log are durable: written, and synced afterwards. Sits below all injected faults. */
export class DurabilityWitness {
  readonly port: FilePort
  /** Lines on disk, by seq. For one session: each has its own folder. */
  readonly lines = new Map<number, string>()
  readonly #logs = new Map<number, WatchedLog>()

  constructor(inner: FilePort) {
    this.port = {
      ...inner,
      openAppend: (path) => {
        const fd = inner.openAppend(path)
        this.#logs.set(fd, { path, pending: '', written: inner.size(fd), synced: inner.size(fd) })
        return fd
      },
      create: (path) => {
        const fd = inner.create(path)
        this.#logs.set(fd, { path, pending: '', written: 0, synced: 0 })
        return fd
      },
      close: (fd) => {
        this.#logs.delete(fd)
        inner.close(fd)
      },
      write: (fd, bytes) => {
        const count = inner.write(fd, bytes)
        const log = this.#logs.get(fd)
        if (log) {
          log.pending += Buffer.from(bytes.buffer, bytes.byteOffset, count).toString('latin1')
          log.written += count
        }
        return count
      },
      truncate: (fd, size) => {
        inner.truncate(fd, size)
        const log = this.#logs.get(fd)
        if (log) Object.assign(log, { pending: '', written: size, synced: size })
      },
      dataSync: async (fd) => {
        const log = this.#logs.get(fd)
        const through = log?.written ?? 0
        await inner.dataSync(fd)
        if (log?.path.endsWith('.jsonl')) this.#synced(log, through)
      },
    }
  }

  #synced(log: WatchedLog, through: number): void {
    const count = through - log.synced
    if (count <= 0) return
    const text = Buffer.from(log.pending.slice(0, count), 'latin1').toString()
    log.pending = log.pending.slice(count)
    log.synced = through
    for (const line of text.split('\n')) {
      if (line === '') continue
      const { seq } = JSON.parse(line) as { seq?: number }
      this.lines.set(seq ?? 1, line)
    }
  }
}

/** Reports a sync before it is done, like a store that takes written data for durable. */
export function hastyPort(inner: FilePort, laterMs: number): FilePort {
  return {
    ...inner,
    dataSync: (fd) => {
      // The file may be closed by then.
      setTimeout(() => void inner.dataSync(fd).catch(() => undefined), laterMs)
      return Promise.resolve()
    },
  }
}
