import type { Ack } from '@tapetree/client/protocol'
import { QueueModel, type QueueLine } from './queue-model.ts'

/** One command of a client, and when it was sent and answered: numbers that only tell what was before what. */
export interface Operation {
  id: string
  op: string
  args: Record<string, unknown>
  sentAt: number
  answer?: { ack: Ack; at: number }
}

/**
 * The log is the order in which everything is said to have happened. It is one if the sequential model agrees with every line, if
 * nothing stands before what had been answered when it was sent, and if every refusal was right at some moment between its
 * question and its answer.
 */
export function checkLinearizable(lines: readonly QueueLine[], operations: readonly Operation[]): string[] {
  const problems: string[] = []
  const seqOf = new Map<string, number>()
  for (const { seq, cause } of lines) {
    if (cause?.cmd === undefined) continue
    if (seqOf.has(cause.cmd)) problems.push(`${cause.cmd} stands in the log twice`)
    seqOf.set(cause.cmd, seq)
  }
  const model = new QueueModel()
  /** By line: the commands that would be refused right after it. */
  const refusable = operations.filter(({ answer }) => answer && !answer.ack.ok)
  const refusedAfter = new Map<string, number[]>(refusable.map(({ id }) => [id, []]))
  const cancels = operations.filter(({ op, answer }) => op === 'cancel' && answer?.ack.ok)
  const acceptedAfter = new Map<string, number[]>(cancels.map(({ id }) => [id, []]))
  for (const line of lines) {
    const wrong = model.apply(line)
    if (wrong !== undefined) problems.push(wrong)
    for (const { id, op, args } of refusable) if (model.refuses(op, args)) refusedAfter.get(id)?.push(line.seq)
    for (const { id, op, args } of cancels) if (!model.refuses(op, args)) acceptedAfter.get(id)?.push(line.seq)
  }
  const last = lines.at(-1)?.seq ?? 0
  for (const { id, op, sentAt, answer } of operations) {
    const own = seqOf.get(id)
    const { from, to } = windowOf({ sentAt, answeredAt: answer?.at ?? Infinity }, operations, seqOf)
    if (own !== undefined && (own <= from || own >= to))
      problems.push(`${id} (${op}) stands in line ${own}, not between ${from} and ${to}`)
    if (answer?.ack.ok && op !== 'cancel' && own === undefined) problems.push(`${id} (${op}) was done and is nowhere`)
    if (answer && !answer.ack.ok && own !== undefined)
      problems.push(`${id} (${op}) was refused and stands in line ${own}`)
    const moments = refusedAfter.get(id) ?? acceptedAfter.get(id)
    if (moments && !moments.some((seq) => seq >= from && seq < Math.min(to, last + 1)))
      problems.push(
        `${id} (${op}) was ${answer?.ack.ok ? 'accepted' : 'refused'} without a reason between lines ${from} and ${to}`,
      )
  }
  return problems
}

/** After all that had been answered when it was sent, and before all that was sent when it had been answered. */
function windowOf(
  { sentAt, answeredAt }: { sentAt: number; answeredAt: number },
  operations: readonly Operation[],
  seqOf: ReadonlyMap<string, number>,
): { from: number; to: number } {
  let from = 1
  let to = Infinity
  for (const other of operations) {
    const seq = seqOf.get(other.id)
    if (seq === undefined) continue
    if (other.answer && other.answer.at < sentAt) from = Math.max(from, seq)
    if (other.sentAt > answeredAt) to = Math.min(to, seq)
  }
  return { from, to }
}
