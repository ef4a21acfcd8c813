import type { Model, AgentEvent } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'

export const tourPrompt = 'Write a program that greets, and test it.'

/** The tests print one line each. The agent process is killed after the second. */
export const tests = 5

export interface TourPace {
  /** Delay between the words of the model. */
  wordMs: number
  /** Delay between the tests. */
  testSeconds: number
}

/** A scripted model. Its answer depends only on its context, so that a resumed run takes the same path. */
export function tourModel(pace: TourPace): Model {
  const answer = ({ messages }: ModelRequest): ScriptBuilder => {
    const results = messages.filter(({ role }) => role === 'tool').length
    return (steps[results] ?? lastWords)(pace)
  }
  return scriptedModel([], { provider: 'tour', id: 'scripted', clock: systemClock, otherwise: answer })
}

const program = `name=\${1:-world}\necho "Hello, $name."\n`

const steps: readonly ((pace: TourPace) => ScriptBuilder)[] = [
  (pace) =>
    said('First I write the program.', pace).toolCall('call-write', 'write', { path: 'greet.sh', content: program }),
  (pace) =>
    said('Now I test it. That takes a few seconds.', pace).toolCall('call-test', 'bash', {
      command: testCommand(pace),
    }),
  (pace) =>
    said('The tests are done. I check their output.', pace).toolCall('call-read', 'read', { path: 'tests.txt' }),
]

function lastWords(pace: TourPace): ScriptBuilder {
  return said(`The program works: all ${tests} tests passed.`, pace)
}

function testCommand({ testSeconds }: TourPace): string {
  return [
    `for i in ${Array.from({ length: tests }, (_, index) => index + 1).join(' ')}; do`,
    `sleep ${testSeconds};`,
    `bash greet.sh "$i" | grep -q "Hello, $i." && echo "test $i of ${tests} passed" | tee -a tests.txt;`,
    'done',
  ].join(' ')
}

function said(words: string, { wordMs }: TourPace): ScriptBuilder {
  const spoken = script()
  for (const word of words.split(/(?<= )/)) spoken.text(word).wait(wordMs)
  return spoken
}

/** What the agent process reports to the tour, one JSON object per line. */
export type TourNews =
  | { type: 'session'; sessionId: string }
  | { type: 'text'; text: string }
  | { type: 'call'; tool: string; input: Record<string, unknown> }
  | { type: 'output'; text: string }
  | { type: 'result'; text: string }
  | { type: 'end'; outcome: string }

export function newsOf(event: AgentEvent): TourNews[] {
  if (event.type === 'delta' && event.kind === 'text') return [{ type: 'text', text: event.text }]
  if (event.type === 'delta' && event.kind === 'tool_output') return [{ type: 'output', text: event.text }]
  if (event.type !== 'line' || event.committed.line.type !== 'message') return []
  return event.committed.line.message.content.flatMap((block): TourNews[] => {
    if (block.type === 'tool_use') return [{ type: 'call', tool: block.toolUse.name, input: block.toolUse.input }]
    if (block.type !== 'tool_result') return []
    const { content } = block.toolResult
    const words =
      typeof content === 'string' ? content : content.map((each) => (each.type === 'text' ? each.text.content : ''))
    return [{ type: 'result', text: [words].flat().join('\n') }]
  })
}
