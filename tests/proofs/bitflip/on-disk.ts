import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context, Session, SessionStore } from '@tapetree/session'
import type { LogLine } from '@tapetree/session/log-store'
import { openFileStore } from '@tapetree/session/stores/file'
import { brokenPairs } from '../../corpus/context-rules.ts'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'
import { flipIn, type Flip } from './flip.ts'
import type { IntactLog } from './intact-log.ts'

const sessionId = 'flipped'

/** Puts flipped logs where a store finds them and looks at them as a user would: verify, open to read, open to write. */
export class OnDisk {
  readonly #log: IntactLog
  readonly #store: SessionStore
  readonly #folder: string
  /** Of the intact log. */
  readonly #context: Context
  readonly #checkpoint: string

  private constructor(
    log: IntactLog,
    store: SessionStore,
    folder: string,
    intact: { context: Context; checkpoint: string },
  ) {
    this.#log = log
    this.#store = store
    this.#folder = folder
    this.#context = intact.context
    this.#checkpoint = intact.checkpoint
  }

  static async open(log: IntactLog, root: string): Promise<OnDisk> {
    const store = openFileStore({ folder: root, port: unsyncedPort() })
    const folder = join(root, sessionId)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'events.jsonl'), log.bytes)
    const session = await store.open(sessionId)
    const context = await session.getContext()
    await session.saveDerived()
    await session.close()
    const checkpoint = readFileSync(join(folder, 'checkpoint.json'), 'utf8')
    return new OnDisk(log, store, folder, { context, checkpoint })
  }

  async close(): Promise<void> {
    await this.#store.close()
  }

  /** What is wrong with this flip, in sentences. `append` also goes on writing and looks again. */
  async try(flip: Flip, options: { append: boolean }): Promise<string[]> {
    const bytes = this.#log.bytes.slice()
    flipIn(bytes, flip)
    this.#place(bytes)
    const problems: string[] = []
    const told = (when: string, found: readonly string[]): void => {
      for (const problem of found) problems.push(`${when}: ${problem}`)
    }
    try {
      const report = await this.#store.verify(sessionId)
      if (report.isIntact) problems.push('verify finds nothing')
      told('open to read', await this.#readOnly(flip, bytes))
      writeFileSync(join(this.#folder, 'checkpoint.json'), this.#checkpoint)
      told('open from the checkpoint', await this.#readOnly(flip, bytes))
      rmSync(join(this.#folder, 'checkpoint.json'))
      told('open to write', await this.#writable(flip, bytes, options))
    } catch (error) {
      problems.push(`thrown: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    }
    return problems
  }

  #place(bytes: Uint8Array): void {
    for (const name of readdirSync(this.#folder)) if (name !== 'lock') rmSync(join(this.#folder, name))
    writeFileSync(join(this.#folder, 'events.jsonl'), bytes)
  }

  #isTail(flip: Flip): boolean {
    return flip.part === 'newline' && flip.line === this.#log.lines.length - 1
  }

  async #readOnly(flip: Flip, bytes: Uint8Array): Promise<string[]> {
    await using session = await this.#store.open(sessionId, { readOnly: true })
    const isQuick = existsSync(join(this.#folder, 'checkpoint.json'))
    const problems = await this.#look(session, flip, { isQuick })
    if (Buffer.compare(this.#logBytes(), bytes) !== 0) problems.push('the log was changed')
    return problems
  }

  async #writable(flip: Flip, bytes: Uint8Array, options: { append: boolean }): Promise<string[]> {
    const session = await this.#store.open(sessionId)
    const problems = this.#isTail(flip)
      ? await this.#mended(session)
      : await this.#look(session, flip, { isQuick: false })
    if (!this.#isTail(flip) && Buffer.compare(this.#logBytes(), bytes) !== 0) problems.push('the log was changed')
    if (options.append) await session.appendMessage('user', [{ type: 'text', text: { content: 'and on' } }])
    await session.close()
    if (options.append) problems.push(...(await this.#afterAppend(flip, bytes)))
    return problems
  }

  /** Only the last newline was flipped: the line is there again, whole, and what lay there is set aside. */
  async #mended(session: Session): Promise<string[]> {
    const problems: string[] = []
    if (session.damage.length > 0) problems.push('damage is left')
    if (Buffer.compare(this.#logBytes(), this.#log.bytes) !== 0) problems.push('the last line was not mended')
    if (!existsSync(join(this.#folder, 'events.jsonl.torn-1'))) problems.push('the torn bytes were not kept')
    if (JSON.stringify(await session.getContext()) !== JSON.stringify(this.#context))
      problems.push('the context differs')
    return problems
  }

  async #afterAppend(flip: Flip, bytes: Uint8Array): Promise<string[]> {
    const problems: string[] = []
    const before = this.#isTail(flip) ? this.#log.bytes : bytes
    if (Buffer.compare(this.#logBytes().subarray(0, before.length), before) !== 0)
      problems.push('old bytes were changed')
    await using session = await this.#store.open(sessionId, { readOnly: true })
    const { messages } = await session.getContext()
    if (!JSON.stringify(messages.at(-1)?.message.content).includes('and on')) problems.push('the append is lost')
    const report = await this.#store.verify(sessionId)
    if (report.isIntact !== this.#isTail(flip)) problems.push(`verify says intact: ${report.isIntact}`)
    return problems
  }

  #logBytes(): Uint8Array {
    return readFileSync(join(this.#folder, 'events.jsonl'))
  }

  async #look(session: Session, flip: Flip, { isQuick }: { isQuick: boolean }): Promise<string[]> {
    const problems: string[] = []
    const isTail = this.#isTail(flip)
    const lost = flip.part === 'newline' && !isTail ? undefined : flip.line
    const lines: LogLine[] = []
    for await (const line of session.lines()) lines.push(line)
    problems.push(...this.#judgeLines(lines, lost, { isTail }))
    const context = await session.getContext()
    // From a checkpoint only what the context needs is read; what is wrong elsewhere is found by `verify`.
    const isSeen = isQuick ? lost !== undefined && this.#log.contextIds.includes(this.#idOf(lost)) : !isTail
    if (isSeen && session.damage.length === 0) problems.push('the session tells of no damage')
    return [...problems, ...brokenPairs(context), ...this.#judgeContext(context, lost)]
  }

  #idOf(line: number): string {
    return this.#log.lines[line]?.line.id ?? ''
  }

  #judgeLines(lines: readonly LogLine[], lost: number | undefined, { isTail }: { isTail: boolean }): string[] {
    const problems: string[] = []
    const texts = new Map(lines.flatMap((line) => (line.type === 'line' ? [[line.seq, line.text]] : [])))
    for (const [index, { text, placed }] of this.#log.lines.entries()) {
      if (index !== lost && texts.get(placed.seq) !== text) problems.push(`line ${placed.seq} does not travel as it is`)
    }
    const expected = lost === undefined ? this.#log.lines.length : this.#log.lines.length - 1
    if (texts.size !== expected) problems.push(`${texts.size} lines travel`)
    // The last line without its newline is one being written: a reader that has not seen it before does not know of it.
    const told = lines.filter(({ type }) => type === 'lost').length
    if (told !== (lost === undefined ? 0 : 1) && !(isTail && told === 0)) problems.push(`${told} losses are told`)
    return problems
  }

  /** Every message of the intact context is there, but for the lost one and what had to be mended because of it. */
  #judgeContext(context: Context, lost: number | undefined): string[] {
    const lostId = lost === undefined ? undefined : this.#idOf(lost)
    const found = new Map(context.messages.map((each) => [each.entryId, each]))
    return this.#context.messages.flatMap(({ entryId, message }) => {
      if (entryId === lostId) return []
      const now = found.get(entryId)
      if (!now) return [`message ${entryId} is not in the context`]
      const isSame = now.made !== undefined || JSON.stringify(now.message) === JSON.stringify(message)
      return isSame ? [] : [`message ${entryId} differs in the context`]
    })
  }
}
