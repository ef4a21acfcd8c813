import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'
import { acceptedLines, checkReading } from './check-reading.ts'

const sessionId = 'broken'

export interface Demands {
  /** Ids of entries that must be in the tree. */
  shown?: readonly string[]
  isReported?: boolean | undefined
}

/** Opens broken logs as real files: to read, which changes nothing, and to write, which only mends the torn end. */
export class OnDisk {
  readonly #store: SessionStore
  readonly #folder: string

  constructor(root: string) {
    this.#store = openFileStore({ folder: root, port: unsyncedPort() })
    this.#folder = join(root, sessionId)
    mkdirSync(this.#folder, { recursive: true })
  }

  async close(): Promise<void> {
    await this.#store.close()
  }

  /** What does not hold; of a file of the corpus also what it demands itself. */
  async try(bytes: Uint8Array, demands: Demands = {}): Promise<string[]> {
    for (const name of readdirSync(this.#folder))
      if (name !== 'lock') rmSync(join(this.#folder, name), { recursive: true })
    writeFileSync(this.#log, bytes)
    const { problems, shown, isReported } = await checkReading(this.#store, {
      sessionId,
      bytes,
      options: { lines: true, verify: true },
    })
    for (const id of demands.shown ?? []) if (!shown.has(id)) problems.push(`entry ${id} is intact and not shown`)
    if (demands.isReported === !isReported)
      problems.push(isReported ? 'damage is reported' : 'the damage is not reported')
    if (!this.#has(bytes)) problems.push('reading changed the file')
    problems.push(...(await this.#openToWrite(bytes)), ...(await this.#append()))
    return problems
  }

  get #log(): string {
    return join(this.#folder, 'events.jsonl')
  }

  #has(bytes: Uint8Array): boolean {
    return Buffer.compare(readFileSync(this.#log), bytes) === 0
  }

  /** Nothing but what lies behind the last newline may go, and then it is kept elsewhere. A second time changes nothing. */
  async #openToWrite(bytes: Uint8Array): Promise<string[]> {
    const problems: string[] = []
    const before = await acceptedLines(bytes)
    await (await this.#store.open(sessionId)).close()
    const mended = readFileSync(this.#log)
    const end = bytes.lastIndexOf(0x0a) + 1
    const tail = bytes.subarray(end)
    const isMended = isLineOf(mended.subarray(end), tail)
    if (Buffer.compare(mended.subarray(0, end), bytes.subarray(0, end)) !== 0)
      problems.push('mending changed whole lines')
    if (mended.length > end && !isMended) problems.push('mending left something behind the last line')
    const isKept = existsSync(`${this.#log}.torn-1`) && Buffer.compare(readFileSync(`${this.#log}.torn-1`), tail) === 0
    const isOnlyNewline = mended.length === bytes.length + 1 && isMended
    if (tail.length > 0 && !isKept && !isOnlyNewline) problems.push('the torn end was not kept')
    const after = await acceptedLines(mended)
    if (JSON.stringify(after.slice(0, before.length)) !== JSON.stringify(before)) problems.push('mending lost a line')
    await (await this.#store.open(sessionId)).close()
    if (!this.#has(mended)) problems.push('opening to write a second time changed the file')
    return problems
  }

  async #append(): Promise<string[]> {
    const before = readFileSync(this.#log)
    const session = await this.#store.open(sessionId)
    const isWritable = session.readOnlyReason === undefined
    const id = isWritable ? await session.appendMessage('user', [{ type: 'text', text: { content: 'on' } }]) : undefined
    await session.close()
    if (id === undefined) return []
    const problems: string[] = []
    if (Buffer.compare(readFileSync(this.#log).subarray(0, before.length), before) !== 0)
      problems.push('an append changed what was there')
    await using again = await this.#store.open(sessionId, { readOnly: true })
    if (again.leafId !== id) problems.push(`the appended message is not the leaf (${again.leafId})`)
    const { messages } = await again.getContext()
    if (messages.at(-1)?.entryId !== id) problems.push('the appended message is not in the context')
    return problems
  }
}

/** Whether bytes are a whole line, with its newline, that the tail began with. */
function isLineOf(line: Uint8Array, tail: Uint8Array): boolean {
  const body = line.subarray(0, -1)
  return (
    line.at(-1) === 0x0a && Buffer.compare(tail.subarray(0, body.length), body) === 0 && tail.length - body.length <= 1
  )
}
