import type { DiskLine } from '@tapetree/session/format'
import type { Chance } from './chance.ts'
import { sealAll } from './sealed-log.ts'

/** The lines of a small valid log as text: sealed as the writer makes them, plain as in the specification, or begun plain. */
export function randomLog(chance: Chance): string[] {
  const lines = randomLines(chance)
  const shape = chance.of(['sealed', 'sealed', 'sealed', 'plain', 'begun plain'] as const)
  if (shape === 'sealed') return sealAll(lines).map(({ text }) => text)
  const plain = lines.filter(({ type }) => type !== 'writer').map((line) => (chance.is(0.3) ? flat(line) : line))
  if (shape === 'plain') return plain.map((line) => JSON.stringify(line))
  const begun = 1 + chance.below(plain.length - 1)
  const sealed = sealAll([...plain.slice(0, begun), writerLine(begun), ...plain.slice(begun)])
  return sealed.map(({ text }, index) => (index < begun ? JSON.stringify(plain[index]) : text))
}

/** The payload's members beside `type` and `id`, as older files have them. */
function flat(line: DiskLine): DiskLine {
  const { [line.type]: payload, ...rest } = line
  return typeof payload === 'object' ? ({ ...rest, ...payload } as DiskLine) : line
}

function randomLines(chance: Chance): DiskLine[] {
  const log = new RandomLog(chance)
  const steps = 2 + chance.below(7)
  for (let step = 0; step < steps; step++) log.step()
  return log.lines
}

function writerLine(index: number): DiskLine {
  return { ...recordBase('writer', index), writer: { term: index + 1, host: 'h', process: '1', format: 1 } }
}

function recordBase(type: string, index: number): DiskLine {
  return { type, id: `${type}-${index}`, timestamp: timeOf(index) }
}

function entryBase(type: string, index: number, parent: string | null): DiskLine {
  return { type, id: `${type}-${index}`, parent_id: parent, timestamp: timeOf(index) }
}

function timeOf(index: number): string {
  return `2026-01-01T00:00:${String(index).padStart(2, '0')}.000Z`
}

class RandomLog {
  readonly lines: DiskLine[] = [{ ...recordBase('session', 0), version: 1, cwd: '/p' }, writerLine(1)]
  readonly #chance: Chance
  readonly #nodes: string[] = []
  #leaf: string | null = null
  #calls: string[] = []

  constructor(chance: Chance) {
    this.#chance = chance
  }

  step(): void {
    const chance = this.#chance
    const kind = this.#calls.length > 0 && chance.is(0.6) ? 'result' : chance.of(kinds)
    const number = this.lines.length
    switch (kind) {
      case 'user':
        this.#entry('message', { role: 'user', content: [text(`words ${number} ✓`)] })
        return
      case 'assistant':
        this.#assistant(number)
        return
      case 'result':
        this.#result(this.#calls.pop() ?? 'call-of-nobody')
        return
      case 'compaction':
        this.#entry('compaction', { summary: 's', first_kept_entry_id: this.#someNode(), tokens_before: number })
        return
      case 'branch_summary':
        this.#entry('branch_summary', { summary: 'b', from_id: this.#leaf }, this.#someNode())
        return
      case 'leaf':
        this.#leaf = this.#someNode()
        this.#record('leaf', { target_id: this.#leaf })
        return
      case 'label':
        this.#note('label', { target_id: this.#someNode(), label: `label ${number}` })
        return
      case 'session_info':
        this.#note('session_info', { name: `name ${number}` })
        return
      case 'submission':
        this.#record('submission', {
          action: 'add',
          id: `q-${number}`,
          delivery: 'follow-up',
          message: 'm',
          image_ids: [],
        })
        return
      case 'permission_request':
        this.#record('permission_request', { request_id: `ask-${number}`, tool: 'bash', title: 't', options: [] })
        return
      default:
        this.#other(kind)
    }
  }

  #assistant(number: number): void {
    const calls = Array.from({ length: this.#chance.below(3) }, (_, index) => `call-${number}-${index}`)
    const blocks = calls.map((id) => ({ type: 'tool_use', tool_use: { id, name: 'read', input: { path: 'a' } } }))
    const reasoning = { type: 'reasoning', reasoning: { text: 'hm', signature: 's' } }
    const usage = { input_tokens: 3, output_tokens: 4, cost: 0.1 }
    this.#entry('message', { role: 'assistant', content: [reasoning, text('say'), ...blocks], usage })
    this.#calls.push(...calls)
  }

  #result(callId: string): void {
    const result = { tool_use_id: callId, content: this.#chance.is(0.5) ? 'done' : [text('done')] }
    this.#entry('message', { role: 'tool', content: [{ type: 'tool_result', tool_result: result }] })
  }

  #other(kind: 'system' | 'model_change' | 'thinking_level' | 'custom' | 'run_start' | 'run_end' | 'unknown'): void {
    switch (kind) {
      case 'system':
        this.#entry('system', { prompt: 'p', tools: [], sha256: 'f'.repeat(64) })
        return
      case 'model_change':
        this.#entry('model_change', { provider: 'p', model_id: 'm' })
        return
      case 'thinking_level':
        this.#entry('thinking_level', { thinking_level: 'low' })
        return
      case 'custom':
        this.#entry('custom', { custom_type: 'c', data: { any: ['thing'] } })
        return
      case 'run_start':
        this.#record('run_start', { run_id: 'run', leaf_id: this.#leaf })
        return
      case 'run_end':
        this.#record('run_end', { run_id: 'run', outcome: this.#chance.of(['completed', 'failed']) })
        return
      case 'unknown':
        this.#entry('from_tomorrow', { when: 'tomorrow' })
        return
      default:
        kind satisfies never
    }
  }

  #entry(type: string, payload: object, parent: string | null = this.#leaf): void {
    const line: DiskLine = { ...entryBase(type, this.lines.length, parent), [type]: payload }
    this.lines.push(line)
    this.#nodes.push(line.id)
    this.#leaf = line.id
  }

  #note(type: string, payload: object): void {
    this.lines.push({ ...entryBase(type, this.lines.length, this.#leaf), [type]: payload })
  }

  #record(type: string, payload: object): void {
    this.lines.push({ ...recordBase(type, this.lines.length), [type]: payload })
  }

  #someNode(): string | null {
    return this.#nodes.length === 0 ? null : this.#chance.of(this.#nodes)
  }
}

const kinds = [
  'user',
  'user',
  'assistant',
  'assistant',
  'result',
  'compaction',
  'branch_summary',
  'leaf',
  'label',
  'session_info',
  'submission',
  'permission_request',
  'system',
  'model_change',
  'thinking_level',
  'custom',
  'run_start',
  'run_end',
  'unknown',
] as const

function text(content: string): object {
  return { type: 'text', text: { content } }
}
