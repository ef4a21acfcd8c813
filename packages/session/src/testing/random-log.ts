import type { DiskLine } from '../line/line.ts'
import { sealLine } from '../line/seal-line.ts'

/** The lines of a random log: a tree with branches, notes, queued messages, permissions and runs. */
export function randomLog(random: () => number, options: { lines: number; damage?: number }): string[] {
  const log = new RandomLog(random)
  const texts: string[] = []
  while (log.seq < options.lines) texts.push(sealLine(log.next(), log.seq).text)
  return texts.flatMap((text, index) =>
    index > 0 && random() < (options.damage ?? 0) ? damaged(text, random) : [text],
  )
}

/** A line as bit rot, a bad disk or a careless edit leaves it. */
function damaged(text: string, random: () => number): string[] {
  const at = Math.floor(random() * text.length)
  const ways = [
    () => [text.slice(0, at) + String.fromCharCode((text.charCodeAt(at) ^ 1) & 0x7f) + text.slice(at + 1)],
    () => [text.slice(0, at), text.slice(at)],
    () => [],
    () => ['garbage', text],
    () => [text, text],
  ]
  return (ways[Math.floor(random() * ways.length)] as () => string[])()
}

class RandomLog {
  readonly #random: () => number
  seq = 0
  #nodes: string[] = []
  #waiting: string[] = []
  #asked: string[] = []
  #leaf: string | null = null
  /** The parent of each node. */
  readonly #parents = new Map<string, string | null>()

  constructor(random: () => number) {
    this.#random = random
  }

  next(): DiskLine {
    this.seq++
    if (this.seq === 1) return this.#line('session', { version: 1, cwd: '/somewhere' })
    if (this.seq === 2) return this.#line('writer', { writer: { term: 1, host: 'h', process: '1', format: 1 } })
    return this.#pick([
      () => this.#message(),
      () => this.#message(),
      () => this.#message(),
      () => this.#setting(),
      () => this.#compaction(),
      () => this.#note(),
      () => this.#move(),
      () => this.#submission(),
      () => this.#permission(),
      () => this.#run(),
    ])()
  }

  #message(): DiskLine {
    const delivered = this.#random() < 0.3 ? this.#waiting.pop() : undefined
    const role = this.#pick(['user', 'assistant', 'user', 'bashExecution'])
    const content = [{ type: 'text', text: { content: `line ${this.seq}` } }]
    return this.#node('message', { role, content, ...(delivered !== undefined && { submission_id: delivered }) })
  }

  #setting(): DiskLine {
    return this.#pick([
      () => this.#node('model_change', { provider: 'p', model_id: `m${this.seq}` }),
      () => this.#node('thinking_level', { thinking_level: `t${this.seq}` }),
      () => this.#node('system', { prompt: `s${this.seq}`, tools: [], sha256: '' }),
      () => this.#node('custom', { custom_type: 'x', data: {} }),
      () => this.#node('branch_summary', { summary: `left ${this.seq}`, from_id: this.#leaf }),
    ])()
  }

  #compaction(): DiskLine {
    const path: string[] = []
    for (let step = this.#leaf; step !== null && path.length < 5; step = this.#parents.get(step) ?? null)
      path.push(step)
    const kept = this.#random() < 0.05 ? 'nowhere' : (this.#pick(path.length > 0 ? path : ['nowhere']) ?? 'nowhere')
    return this.#node('compaction', { summary: `sum ${this.seq}`, first_kept_entry_id: kept, tokens_before: 1 })
  }

  #note(): DiskLine {
    const target = this.#nodes.length > 0 ? this.#pick(this.#nodes) : 'missing'
    const label = this.#pick(['', 'a', 'b'])
    const payload = this.#random() < 0.5 ? { name: `name ${this.seq}` } : undefined
    if (payload) return { ...this.#line('session_info', { session_info: payload }), parent_id: this.#leaf }
    return { ...this.#line('label', { label: { target_id: target, label } }), parent_id: this.#leaf }
  }

  #move(): DiskLine {
    const target = this.#random() < 0.1 || this.#nodes.length === 0 ? null : this.#pick(this.#nodes)
    this.#leaf = target
    return this.#line('leaf', { leaf: { target_id: target } })
  }

  #submission(): DiskLine {
    const id = this.#waiting.length > 0 ? this.#pick(this.#waiting) : 'none'
    const added = `q-${this.seq}`
    return this.#line('submission', {
      submission: this.#pick([
        () => {
          this.#waiting.push(added)
          const delivery = this.#pick(['steer', 'follow-up'])
          return { action: 'add', id: added, delivery, message: added, image_ids: [], queued_at: 't' }
        },
        () => ({ action: 'edit', id, message: `edited ${this.seq}` }),
        () => ({ action: 'move', id, before_id: this.#waiting[0] ?? null }),
        () => ({ action: 'hold', id }),
        () => ({ action: 'hold', reason: 'by hand' }),
        () => ({ action: 'release' }),
        () => ({ action: 'remove', id }),
        () => ({ action: 'clear' }),
      ])(),
    })
  }

  #permission(): DiskLine {
    if (this.#random() < 0.2) {
      return this.#line('permission_mode', { permission_mode: { mode: this.#pick(['plan', 'ask', 'auto']) } })
    }
    const asked = this.#random() < 0.5 ? this.#asked.pop() : undefined
    if (asked !== undefined) {
      const permission_result = { request_id: asked, outcome: 'allowed', grant: { tool: asked } }
      return this.#line('permission_result', { permission_result })
    }
    this.#asked.push(`p-${this.seq}`)
    return this.#line('permission_request', { permission_request: { request_id: `p-${this.seq}`, tool: 'bash' } })
  }

  #run(): DiskLine {
    if (this.#random() < 0.5)
      return this.#line('run_start', { run_start: { run_id: `r-${this.seq}`, leaf_id: this.#leaf } })
    const outcome = this.#pick(['completed', 'failed', 'aborted'])
    return { ...this.#line('run_end', { run_end: { run_id: 'r', outcome } }), cause: { cmd: `c-${this.seq}` } }
  }

  #node(type: string, payload: Record<string, unknown>): DiskLine {
    const id = `e-${this.seq}`
    const elsewhere = this.#random() < 0.1 && this.#nodes.length > 0
    const parent = elsewhere ? this.#pick(this.#nodes) : this.#leaf
    this.#nodes.push(id)
    this.#parents.set(id, parent)
    this.#leaf = id
    return { ...this.#line(type, { [type]: payload }), id, parent_id: parent }
  }

  #line(type: string, members: Record<string, unknown>): DiskLine {
    return { type, id: `l-${this.seq}`, timestamp: '2026-01-01T00:00:00.000Z', ...members }
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T
  }
}
