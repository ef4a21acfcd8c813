import { isDeepStrictEqual } from 'node:util'
import { limits, type Ack, type Attached, type AttachRequest, type TextFrame } from '@tapetree/client/protocol'
import { checksum, fromDisk, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import type { ScreenWatcher, WireLine, WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import type { SentCommand } from './check-log.ts'
import type { Violation } from './violation.ts'

/** What a referee in the server's own process knows besides what is sent. */
export interface InnerEvidence {
  /** Lines that are durable just now. */
  durable: ReadonlyMap<number, string>
  /** What the model has said so far, by item, part and kind. */
  spoken: ReadonlyMap<string, string>
}

/** Watches all screens of a history, frame by frame. */
export class Referee implements ScreenWatcher {
  readonly violations: Violation[] = []
  readonly commands = new Map<string, SentCommand>()
  readonly acks = new Map<string, Ack>()
  /** Lines as they were first seen. */
  readonly seen = new Map<number, string>()
  frames = 0
  readonly #inner: () => InnerEvidence | undefined
  /** The line that each screen has to be sent next. */
  readonly #next = new Map<WireScreen, number>()
  /** The lines with which an item was complete, or began once more: a call is made again on another branch. */
  readonly #turns = new Map<string, Map<number, 'begun' | 'complete'>>()

  constructor(inner: () => InnerEvidence | undefined) {
    this.#inner = inner
  }

  wrong(invariant: string, message: string): void {
    if (this.violations.length < 50) this.violations.push({ invariant, message })
  }

  attached(screen: WireScreen, { after }: AttachRequest, { mode, reason, from, head, snapshot }: Attached): void {
    this.frames++
    const expected = this.#expectedReason(after, head.seq)
    if (expected !== 'unknown' && expected !== reason) {
      const cursor = JSON.stringify(after ?? null)
      this.wrong('I11', `${screen.id} came with ${cursor} and got ${reason ?? mode}, not ${expected ?? 'the tail'}`)
    }
    const base = mode === 'tail' ? after?.seq : snapshot?.head.seq
    if (base === undefined || from !== base + 1)
      this.wrong('I3', `${screen.id} stands at ${base} and is told from ${from}`)
    // What counts is where the screen itself stands.
    this.#next.set(screen, (base ?? 0) + 1)
    for (const { seq, text } of snapshot?.lines ?? []) this.#see(screen, seq, text)
  }

  line(screen: WireScreen, { seq, text, disk }: WireLine): void {
    this.frames++
    const expected = this.#next.get(screen) ?? 0
    if (seq !== expected) {
      const between = seq > expected ? this.#between(expected, seq) : ''
      const invariant = between.includes('from_the_future') ? 'I15' : 'I3'
      this.wrong(invariant, `${screen.id} got line ${seq} where ${expected} was due`)
    }
    this.#next.set(screen, seq + 1)
    this.#see(screen, seq, text)
    this.#land(disk)
  }

  text(screen: WireScreen, { item, part, kind, off, text }: TextFrame): void {
    this.frames++
    const completeSince = this.#completeSince(item, screen.cursor?.seq ?? 0)
    if (completeSince !== undefined)
      this.wrong('I5', `${screen.id} got text of ${item}, which is complete since line ${completeSince}`)
    if (isHigh(text.charCodeAt(text.length - 1)) || isLow(text.charCodeAt(0)))
      this.wrong('I5', `${screen.id} got half a character at ${off} of ${item}`)
    if (text.length > limits.maxTextLength) this.wrong('I5', `${screen.id} got ${text.length} code units in a frame`)
    const spoken = this.#inner()?.spoken.get(`${item} ${part} ${kind}`)
    if (this.#inner() && spoken?.slice(off, off + text.length) !== text)
      this.wrong('I5', `${screen.id} got ${JSON.stringify(text.slice(0, 40))} at ${off} of ${item}, which nobody said`)
  }

  ack(screen: WireScreen, ack: Ack): void {
    this.frames++
    const { id, ok, seq } = ack
    if (!this.acks.get(id)?.ok) this.acks.set(id, ack)
    const durable = this.#inner()?.durable
    if (!ok || !durable) return
    const { op = '' } = this.commands.get(id) ?? {}
    const effect = seq === undefined ? undefined : durable.get(seq)
    const isThere = effect?.includes(`"cmd":${JSON.stringify(id)}`) ?? false
    if (/^(prompt|steer|follow_up|permission|branch|label|rename|queue)/.test(op) && !isThere)
      this.wrong('I6', `${screen.id} was told that ${id} (${op}) is done, and line ${seq} does not say so`)
  }

  /** Undefined: the tail. */
  #expectedReason(after: AttachRequest['after'], head: number): string | undefined {
    if (!after) return 'first'
    if (after.seq > head) return 'cursor_ahead'
    const text = this.#inner()?.durable.get(after.seq) ?? this.seen.get(after.seq)
    if (text === undefined) return 'unknown'
    const { crc = checksum(text) } = JSON.parse(text) as { crc?: string }
    return crc === after.crc ? undefined : 'history_changed'
  }

  #between(from: number, to: number): string {
    const durable = this.#inner()?.durable ?? this.seen
    return Array.from({ length: to - from }, (_, index) => durable.get(from + index) ?? '').join('\n')
  }

  #see(screen: WireScreen, seq: number, text: string): void {
    const before = this.seen.get(seq)
    if (before === undefined) this.seen.set(seq, text)
    else if (before !== text) this.wrong('I1', `${screen.id} got another line ${seq} than others`)
    const durable = this.#inner()?.durable
    if (!durable || durable.get(seq) === text) return
    if (durable.has(seq)) this.wrong('I1', `${screen.id} got another line ${seq} than is stored`)
    else this.wrong('I2', `${screen.id} got line ${seq} before it was durable`)
  }

  /** As far as a screen knows that has come to a line. */
  #completeSince(item: string, line: number): number | undefined {
    const turns = [...(this.#turns.get(item) ?? [])].filter(([seq]) => seq <= line)
    const [seq, turn] = turns.sort(([left], [right]) => left - right).at(-1) ?? []
    return turn === 'complete' ? seq : undefined
  }

  #land(disk: DiskLine & Record<string, unknown>): void {
    const seq = Number(disk['seq'])
    const turn = (item: string, to: 'begun' | 'complete'): void =>
      void this.#turns.set(item, (this.#turns.get(item) ?? new Map<number, typeof to>()).set(seq, to))
    turn(disk.id, 'complete')
    const { item } = (disk['attempt'] ?? {}) as { item?: string }
    if (item !== undefined) turn(item, 'complete')
    const { call_id: started } = (disk['tool_start'] ?? {}) as { call_id?: string }
    if (started !== undefined) turn(started, 'begun')
    const { content = [] } = (disk['message'] ?? {}) as { content?: { tool_result?: { tool_use_id: string } }[] }
    for (const { tool_result: result } of content) if (result) turn(result.tool_use_id, 'complete')
  }
}

/** What a screen shows. Of one that began with a snapshot the items before its first are not there. */
export function shown(state: Transcript, items = Infinity): Record<string, unknown> {
  const { tree: _, finished: __, path, labels, ...rest } = state
  const all = [...path.items].filter(({ type }) => type !== 'gap')
  return { ...rest, labels: new Map(labels), leafId: path.leafId, items: all.slice(Math.max(0, all.length - items)) }
}

function itemCount(state: Transcript): number {
  return [...state.path.items].filter(({ type }) => type !== 'gap').length
}

export function foldOf(lines: readonly string[]): Transcript {
  let state = emptyTranscript()
  for (const [index, text] of lines.entries()) {
    const line = fromDisk(JSON.parse(text) as DiskLine, index + 1)
    state = reduceTranscript(state, { type: 'line', line })
  }
  return state
}

/** The first member in which a screen differs from the log. */
export function differenceOf(screen: Transcript, log: Transcript): string | undefined {
  const left = shown(screen)
  const right = shown(log, itemCount(screen))
  const member = Object.keys(right).find((name) => !isDeepStrictEqual(left[name], right[name]))
  if (member === undefined) return undefined
  return `${member}: ${JSON.stringify(left[member])?.slice(0, 300)} is not ${JSON.stringify(right[member])?.slice(0, 300)}`
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}

function isLow(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000
}
