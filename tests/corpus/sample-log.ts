import { checksum, type DiskLine } from '@tapetree/session/format'

/**
 * A session of 20 KB with every kind of line: two writers, a run with tools, notes, moves of the leaf, a compaction, a branch
 * summary, waiting messages, permissions. Its text has the bytes that one flipped bit turns into a newline: `J`, `*` and 0x8A.
 */
export function sampleLines(): DiskLine[] {
  const log = new SampleLog()
  log.record('session', undefined, { version: 1, cwd: '/home/jo/Projects/*' })
  log.writer(1)
  log.note('session_info', { name: 'Jour de fête 😊' })
  log.entry('system', { prompt: prose(300), tools: [readFile], sha256: 'a'.repeat(64) })
  log.entry('model_change', { provider: 'anthropic', model_id: 'claude-J' })
  const first = log.user('Read main.ts and say what it does. *Just* that. Ċ')
  log.record('run_start', { run_id: 'run-1', leaf_id: first })
  log.assistant([text(prose(400)), call('call-1', { path: 'main.ts' }), call('call-2', { path: 'Jobs*.ts' })])
  log.record('permission_request', {
    request_id: 'ask-1',
    run_id: 'run-1',
    call_id: 'call-2',
    tool: 'read_file',
    title: 'Read Jobs*.ts?',
    options: [{ option_id: 'yes', label: 'Ja', kind: 'allow_always' }],
  })
  log.record('permission_result', { request_id: 'ask-1', outcome: 'allowed', grant: { tool: 'read_file' } })
  log.result('call-1', prose(800))
  log.result('call-2', `${prose(700)} 日本語 – 𝔘𝔫𝔦 \u2028 \u0085`)
  const answer = log.assistant([reasoning(prose(500)), text(prose(800))])
  log.record('run_end', { run_id: 'run-1', outcome: 'completed', duration_ms: 1234 })
  log.note('label', { target_id: answer, label: 'Juli * 😊' })
  log.submission({ action: 'add', id: 'q-1', delivery: 'follow-up', message: prose(300) })
  log.user(prose(300), { submission_id: 'q-1' })
  log.record('leaf', { target_id: answer })
  log.leaf = answer
  log.assistant([text(prose(900))])
  const abandoned = log.leaf
  log.leaf = first
  log.entry('branch_summary', { summary: prose(400), from_id: abandoned })
  const kept = log.user(prose(600))
  log.assistant([text(prose(500)), call('call-3', { path: 'J.json', deep: { a: [1, [2, [3]]] } })])
  log.result('call-3', [text(prose(600))])
  log.writer(2)
  log.entry('compaction', { summary: prose(500), first_kept_entry_id: kept, tokens_before: 12_345 })
  log.user(prose(500), {}, { cmd: 'cmd-J', client: 'web' })
  log.entry('holiday', { day: 'Johannis' })
  log.submission({ action: 'add', id: 'q-2', delivery: 'follow-up', message: 'Wait for me, *please*' })
  log.submission({ action: 'hold', id: 'q-2' })
  log.record('permission_request', {
    request_id: 'ask-2',
    tool: 'bash',
    title: 'Run ls *?',
    options: [{ option_id: 'no', label: 'Nein', kind: 'reject_once' }],
  })
  log.assistant([text(`${prose(900)} Ende 😊`)])
  log.note('label', { target_id: kept, label: 'kept' })
  log.submission({ action: 'add', id: 'q-3', delivery: 'follow-up', message: `${prose(300)} J` })
  return log.lines
}

const readFile = { name: 'read_file', description: 'Reads a file', input_schema: { type: 'object' } }

class SampleLog {
  readonly lines: DiskLine[] = []
  leaf: string | null = null

  record(type: string, payload?: object, members: object = {}): void {
    this.lines.push({ type, id: this.#id(), timestamp: this.#time(), ...members, ...(payload && { [type]: payload }) })
  }

  note(type: string, payload: object): void {
    this.lines.push({ ...this.#base(type), [type]: payload })
  }

  entry(type: string, payload: object, members: object = {}): string {
    const line: DiskLine = { ...this.#base(type), [type]: payload, ...members }
    this.lines.push(line)
    this.leaf = line.id
    return line.id
  }

  writer(term: number): void {
    this.record('writer', { term, host: 'Jupiter', process: String(1000 + term), format: 1 })
  }

  submission(change: Record<string, unknown>): void {
    const isAdded = change['action'] === 'add'
    this.record('submission', { ...change, ...(isAdded && { image_ids: [], queued_at: this.#time() }) })
  }

  user(words: string, members: object = {}, cause?: object): string {
    return this.entry('message', { role: 'user', content: [text(words)], ...members }, cause && { cause })
  }

  assistant(content: object[]): string {
    const usage = { input_tokens: 100, output_tokens: 20, cost: 0.01 }
    return this.entry('message', { role: 'assistant', content, model: 'claude-J', provider: 'anthropic', usage })
  }

  result(callId: string, content: string | object[]): string {
    const result = { type: 'tool_result', tool_result: { tool_use_id: callId, content } }
    return this.entry('message', { role: 'tool', content: [result] })
  }

  #base(type: string): DiskLine {
    return { type, id: this.#id(), parent_id: this.leaf, timestamp: this.#time() }
  }

  /** A UUIDv7 as the writer makes it: a rising number and a tail that differs in many bits. */
  #id(): string {
    const number = this.lines.length
    const tail = checksum(`tail of ${number}`)
    return `0195c3f2-7b4e-7c21-9${tail.slice(0, 3)}-${(0x100 + number).toString(16).padStart(4, '0')}${tail}`
  }

  #time(): string {
    return new Date(Date.UTC(2026, 0, 15, 10, 0, this.lines.length)).toISOString()
  }
}

function text(content: string): object {
  return { type: 'text', text: { content } }
}

function reasoning(words: string): object {
  return { type: 'reasoning', reasoning: { text: words, signature: 'Jk*9' } }
}

function call(id: string, input: object): object {
  return { type: 'tool_use', tool_use: { id, name: 'read_file', input } }
}

const words = 'Just a jar of *ink*, “three” Jäger \\ and "quotes"; the ćafé – naïve 😊 Ċ line\tof text. '

function prose(length: number): string {
  return words
    .repeat(Math.ceil(length / words.length))
    .slice(0, length)
    .toWellFormed()
}
