import type { FilePort } from '@tapetree/session/stores/file'

interface WatchedLog {
  path: string
  /** Written, and not known to be on the disk. */
  pending: string
  written: number
  synced: number
}

/** Knows of each log what is durable: written, and synced after that. Sits below everything that is tried. */
export class DurabilityWitness {
  readonly port: FilePort
  /** Lines on the disk, by their seq. Of one session: a folder of its own each. */
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

/** Says that it is done before it is: what a store does that takes written for durable. */
export function hastyPort(inner: FilePort, laterMs: number): FilePort {
  return {
    ...inner,
    dataSync: (fd) => {
      // It may be closed by then.
      setTimeout(() => void inner.dataSync(fd).catch(() => undefined), laterMs)
      return Promise.resolve()
    },
  }
}
