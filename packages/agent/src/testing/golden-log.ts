import type { Session } from '@tapetree/session'

export interface GoldenLogOptions {
  /** Replacements for folders of this machine, by path. */
  folders?: Readonly<Record<string, string>>
}

/**
 * The log of a session, line by line, independent of machine and time: ids become short names in the order in which
 * they appear, and values of this machine or file (`seq`, `crc`) are removed. Times are those of the store's clock.
 */
export async function goldenLog(session: Session, { folders = {} }: GoldenLogOptions = {}): Promise<string[]> {
  const names = new StableNames(folders)
  const golden: string[] = []
  for await (const line of session.lines()) {
    if (line.type !== 'line') throw new Error(`Line ${line.seq} of session ${session.id} is lost.`)
    const { seq: _, crc: __, ...members } = JSON.parse(line.text) as Members
    golden.push(JSON.stringify(names.inLine(members)))
  }
  return golden
}

type Members = Record<string, unknown>

/** Members that differ between machines, by the type of their line. `request` may be on any. */
const strange: Record<string, Members> = {
  writer: { host: '<host>', process: '<process>' },
  tool_start: { host: '<host>', boot_id: '<boot id>' },
  request: { sha256: '<sha256>' },
}

/** The name of an id, by the member in which it first occurs; the id of a line is named after the line. */
const kinds: Record<string, string> = {
  run_id: 'run',
  resumes: 'run',
  item: 'item',
  request_id: 'question',
  submission_id: 'q',
}

/** Of lines, runs and requests; of queued messages; of commands. */
const idPattern = /\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(q)-\d+-[0-9a-f]{8}|(job)-[0-9a-f]{12})\b/g

class StableNames {
  readonly #folders: [path: string, name: string][]
  readonly #names = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  constructor(folders: Readonly<Record<string, string>>) {
    // A nested folder has its own name.
    this.#folders = Object.entries(folders).sort(([left], [right]) => right.length - left.length)
  }

  inLine(line: Members): Members {
    const { type, id, timestamp } = line as { type: string; id: string; timestamp: string }
    this.#inText(id, type === 'message' ? 'm' : type)
    settle(line[type], strange[type])
    settle(line['request'], strange['request'])
    // The inbox uses only the clock of the machine.
    settle(line['submission'], { queued_at: timestamp })
    return this.#inValue(line, type) as Members
  }

  #inValue(value: unknown, member: string): unknown {
    if (typeof value === 'string') return this.#inText(value, kinds[member] ?? member)
    if (Array.isArray(value)) return value.map((item) => this.#inValue(item, member))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, this.#inValue(inner, name)]))
  }

  #inText(text: string, kind: string): string {
    const local = this.#folders.reduce((rest, [path, name]) => rest.replaceAll(path, name), text)
    return local.replace(idPattern, (id, ...own: (string | undefined)[]) => this.#nameOf(id, own[0] ?? own[1] ?? kind))
  }

  #nameOf(id: string, kind: string): string {
    const known = this.#names.get(id)
    if (known !== undefined) return known
    const count = (this.#counts.get(kind) ?? 0) + 1
    this.#counts.set(kind, count)
    const name = `${kind}${count}`
    this.#names.set(id, name)
    return name
  }
}

/** Missing members stay missing. */
function settle(payload: unknown, fixed: Members = {}): void {
  const members = payload as Members | undefined
  for (const name in fixed) if (members?.[name] !== undefined) members[name] = fixed[name]
}
