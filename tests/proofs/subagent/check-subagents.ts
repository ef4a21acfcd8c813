import { readFile } from 'node:fs/promises'
import type { Message, Session, SessionStore } from '@tapetree/session'
import { readLog } from '../resume/check-survived.ts'
import { parentAnswer, tasksOf, type SubagentTask } from './tasks.ts'

export interface Checked {
  problems: string[]
  /** How often a subagent went on in another process. */
  resumed: number
}

/** Holds a session that has come to its end, and those of its subagents, against what must be so however often it was killed. */
export async function checkSubagents(
  store: SessionStore,
  parentId: string,
  expected: { lines: ReadonlyMap<number, string>; marks: string },
): Promise<Checked> {
  const parent = await store.open(parentId, { readOnly: true })
  const tasks = tasksOf(expected.marks)
  const { stored } = await readLog(parent)
  const lost = [...expected.lines].filter(([seq, crc]) => stored.get(seq) !== crc)
  const problems = lost.map(([seq]) => `line ${seq} of the parent was durable and is not there`)
  const { messages, repairs } = await parent.getContext()
  problems.push(
    ...repairs,
    ...checkParent(
      parent,
      messages.map(({ message }) => message),
      tasks,
    ),
  )
  const started = await startedBy(parent)
  const { sessions } = await store.list()
  const children = sessions.filter(({ parentSession }) => parentSession === parentId).map(({ id }) => id)
  const named = tasks.flatMap(({ callId }) => [...(started.get(callId) ?? [])])
  if (named.length !== tasks.length || children.toSorted().join() !== named.toSorted().join())
    problems.push(`the calls name the sessions ${named.join()}, and under the parent are ${children.join()}`)
  let resumed = 0
  for (const task of tasks) {
    const [childId] = started.get(task.callId) ?? []
    if (childId === undefined || !children.includes(childId)) continue
    const child = await store.open(childId, { readOnly: true })
    problems.push(...(await checkChild(child, task)).map((problem) => `${task.prompt}: ${problem}`))
    resumed += await countResumes(child)
    await child.close()
  }
  await parent.close()
  return { problems, resumed }
}

/** Each call has one result, which is what the subagent said last, and the parent has the last word. */
function checkParent(parent: Session, messages: readonly Message[], tasks: readonly SubagentTask[]): string[] {
  const problems = parent.openRun ? ['the run of the parent has no end'] : []
  const results = resultsIn(messages)
  for (const { callId, answer } of tasks) {
    const said = results.filter(({ toolUseId }) => toolUseId === callId).map(({ content }) => content)
    if (said.length !== 1 || said[0] !== answer) problems.push(`${callId} was answered by ${JSON.stringify(said)}`)
  }
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || textOf(last) !== parentAnswer) problems.push('the answer of the parent is missing')
  return problems
}

/** It was asked once, its command ran once and has its whole output, and it came to its end. */
async function checkChild(child: Session, { prompt, command, output, mark }: SubagentTask): Promise<string[]> {
  const problems = child.openRun ? ['its run has no end'] : []
  const context = await child.getContext()
  const messages = context.messages.map(({ message }) => message)
  const asked = messages.filter(({ role }) => role === 'user').map(textOf)
  if (asked.join() !== prompt) problems.push(`it was asked ${JSON.stringify(asked)}`)
  const printed = resultsIn(messages).map(({ content }) => content)
  if (printed.join() !== output) problems.push(`${command.slice(0, 20)}… gave ${JSON.stringify(printed).slice(0, 300)}`)
  const runs = (await readFile(mark, 'utf8').catch(() => '')).split('\n').length - 1
  if (runs !== 1) problems.push(`its command ran ${runs} times`)
  return [...problems, ...context.repairs]
}

/** The sessions that `tool_start` names for each call. */
async function startedBy(parent: Session): Promise<Map<string, Set<string>>> {
  const started = new Map<string, Set<string>>()
  for await (const { tool_start: start } of recordsOf(parent)) {
    if (start?.child_session === undefined) continue
    started.set(start.call_id, (started.get(start.call_id) ?? new Set()).add(start.child_session))
  }
  return started
}

async function countResumes(child: Session): Promise<number> {
  let count = 0
  for await (const { run_start: start } of recordsOf(child)) if (start?.resumes !== undefined) count++
  return count
}

interface StoredRecord {
  tool_start?: { call_id: string; child_session?: string }
  run_start?: { resumes?: unknown }
}

async function* recordsOf(session: Session): AsyncGenerator<StoredRecord> {
  for await (const line of session.lines()) if (line.type === 'line') yield JSON.parse(line.text) as StoredRecord
}

function resultsIn(messages: readonly Message[]): { toolUseId: string; content: unknown }[] {
  return messages.flatMap(({ content }) =>
    content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : [])),
  )
}

function textOf({ content }: Message): string {
  return content.map((block) => (block.type === 'text' ? block.text.content : '')).join('')
}
