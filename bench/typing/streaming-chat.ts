import { runChat } from '../../packages/cli/src/tui/run-chat.ts'
import type { ScriptedHandle } from '../../packages/cli/src/tui/testing/scripted-handle.ts'
import { ScriptedSource } from '../../packages/cli/src/tui/testing/scripted-source.ts'

/** The chat as a user has it, over a long conversation into which a model streams without end. */

const [entries = 10_000, tokensPerSecond = 200] = process.argv.slice(2).map(Number)
const tokensOfAnswer = 600

const source = new ScriptedSource()
const first = source.opened('bench')
const { handle } = first
for (let entry = 0; entry < entries; entry += 2) {
  handle.user(`Question ${entry}: what does the parser do with a line that is torn?`)
  handle.assistant(answerOf(entry))
}
handle.startRun()
stream(handle)
await runChat({
  source,
  first,
  look: { theme: 'dark', vim: false, screenReader: false, altScreen: true, color: true },
  cwd: process.cwd(),
  home: process.cwd(),
  env: process.env,
})
process.exit(0)

function answerOf(entry: number): string {
  return [
    `It keeps **everything before** the line and says so, see \`parse-line.ts:${entry}\`.`,
    '- the bytes stay where they are\n- the reader is told what is missing',
    '```ts\nconst torn = readLine(bytes) ?? lost(1)\n```',
  ].join('\n\n')
}

/** One token at a time; late timers are made up for, so that the rate is the one that was asked for. */
function stream(into: ScriptedHandle): void {
  const begun = performance.now()
  let sent = 0
  let answer = 0
  setInterval(() => {
    const due = Math.floor(((performance.now() - begun) * tokensPerSecond) / 1000)
    for (; sent < due; sent++) {
      const place = sent % tokensOfAnswer
      if (place === 0 && sent > 0) into.message({ role: 'assistant', content: [] }, `answer-${answer++}`)
      into.streamText(`answer-${answer}`, place % 40 === 39 ? '\n\n' : place % 7 === 3 ? ' **word**' : ' token')
    }
  }, 1000 / tokensPerSecond)
}
