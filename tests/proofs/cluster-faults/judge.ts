import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { jobOf } from '../takeover/words.ts'
import type { SentJob } from './watched-session.ts'

/** A line as it is in the database, and who has written it. */
export interface StoredLine {
  n: number
  line: string
  writer: string
  /** The claim under which it was written. */
  term: number
}

export interface Evidence {
  /** By session. */
  logs: ReadonlyMap<string, readonly StoredLine[]>
  jobs: ReadonlyMap<string, readonly SentJob[]>
  /** The calls that have started, once for each start. */
  ledger: readonly string[]
  /** Lines that clients have got, by session and number. */
  seen: ReadonlyMap<string, ReadonlyMap<number, string>>
}

/** What is wrong with a history that is over. Empty if nothing is. */
export function judge({ logs, jobs, ledger, seen }: Evidence): string[] {
  const problems: string[] = []
  const started = new Set<string>()
  for (const [session, sent] of jobs) {
    const stored = logs.get(session) ?? []
    const lines = stored.map(({ n, line }) => fromDisk(JSON.parse(line) as DiskLine, n))
    for (const line of lines) if (line.type === 'tool_start') started.add(line.toolStart.callId)
    const found = [
      ...linesAreInOrder(stored, lines),
      ...nobodyStaleWrote(stored),
      ...messagesAreThere(lines, sent),
      ...callsHaveOneResult(lines),
      ...runsHaveEnded(lines),
      ...clientsGotTheLog(stored, seen.get(session)),
    ]
    problems.push(...found.map((problem) => `session ${session}: ${problem}`))
  }
  for (const [call, starts] of Map.groupBy(ledger, (each) => each)) {
    if (starts.length > 1) problems.push(`call ${call} ran ${starts.length} times`)
    if (!started.has(call)) problems.push(`call ${call} ran, and no log says so`)
  }
  return problems
}

function linesAreInOrder(stored: readonly StoredLine[], lines: readonly Line[]): string[] {
  return stored.flatMap(({ n }, index) =>
    n === index + 1 && lines[index]?.seq === n ? [] : [`line ${n} is where line ${index + 1} belongs`],
  )
}

/** Terms grow, and in each there is one writer. */
function nobodyStaleWrote(stored: readonly StoredLine[]): string[] {
  const writers = new Map<number, string>()
  let newest = 0
  return stored.flatMap(({ n, writer, term }) => {
    // The first line is written before anybody has a claim.
    if (n === 1) return []
    const owner = writers.get(term) ?? writer
    writers.set(term, owner)
    const isOld = term < newest
    newest = Math.max(newest, term)
    return isOld || owner !== writer ? [`STALE: ${writer} wrote line ${n} in term ${term} of ${owner}`] : []
  })
}

/** What was acknowledged is there once, and nothing is there twice. */
function messagesAreThere(lines: readonly Line[], sent: readonly SentJob[]): string[] {
  const said = Map.groupBy(
    lines.flatMap((line) => {
      if (line.type !== 'message' || line.message.role !== 'user') return []
      return line.message.content.flatMap((block) => {
        const job = block.type === 'text' ? jobOf(block.text.content) : undefined
        return job ? [job.tag] : []
      })
    }),
    (tag) => tag,
  )
  return sent.flatMap(({ tag, told }) => {
    const times = said.get(tag)?.length ?? 0
    if (times > 1) return [`DOUBLED: message ${tag} is in the log ${times} times`]
    return told === 'acknowledged' && times === 0 ? [`LOST: message ${tag} was acknowledged`] : []
  })
}

/** A call whose outcome is unknown has a result that says so. */
function callsHaveOneResult(lines: readonly Line[]): string[] {
  const results = new Map<string, number>()
  for (const line of lines) {
    if (line.type !== 'message') continue
    for (const block of line.message.content) {
      if (block.type === 'tool_use') results.set(block.toolUse.id, results.get(block.toolUse.id) ?? 0)
      if (block.type !== 'tool_result') continue
      const { toolUseId } = block.toolResult
      results.set(toolUseId, (results.get(toolUseId) ?? 0) + 1)
    }
  }
  return [...results].flatMap(([call, count]) => (count === 1 ? [] : [`call ${call} has ${count} results`]))
}

function runsHaveEnded(lines: readonly Line[]): string[] {
  const open = new Set<string>()
  const problems: string[] = []
  for (const line of lines) {
    if (line.type === 'run_start') open.add(line.runStart.runId)
    if (line.type !== 'run_end') continue
    if (!open.delete(line.runEnd.runId)) problems.push(`run ${line.runEnd.runId} ended, and was not open`)
  }
  return [...problems, ...[...open].map((run) => `run ${run} has no end`)]
}

function clientsGotTheLog(stored: readonly StoredLine[], seen: ReadonlyMap<number, string> = new Map()): string[] {
  return [...seen].flatMap(([seq, text]) =>
    stored[seq - 1]?.line === text ? [] : [`clients got line ${seq}, and the log has another one`],
  )
}
