import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { HostileCases } from './terminal/hostile-case.ts'
import { LiveDisplays } from './terminal/live-displays.ts'
import { scan } from './terminal/own-codes.ts'
import { RecordedDisplays } from './terminal/recorded-displays.ts'
import type { Shown } from './terminal/show.ts'
import { findSlowText } from './terminal/slow-text.ts'

export const name = 'terminal'
export const claim = 'No escape sequence from a model, tool or file name reaches your terminal, and no text freezes it.'
export const sizes = { ci: { marks: 20_000, textsPerLanguage: 8 }, full: { marks: 200_000, textsPerLanguage: 80 } }

/** Questions that the app asks a terminal when it starts: what its keyboard can do, how large a cell is, which background it has. */
const ownQuestions = 8

/** Where output of programs is tidied up, a carriage return or half a sequence may take a mark with it. Such a case is not counted. */
const mayBeMissing = 0.1

/**
 * Escape sequences of every class, from everywhere that words of others come from, cut at every place, in front of a real terminal:
 * only our own colours and the app's own screen control arrive, and the terminal does nothing for anybody else. And text that is made to
 * take long, in every language and as Markdown: none takes more than 20 times as long as ordinary text of the same size.
 */
export async function run({ size, random, say }: FigureContext): Promise<FigureResult> {
  const cases = new HostileCases(random)
  const problems: string[] = []
  const arrivedFrom = new Map<string, number>()
  let arrived = 0
  const judge = (shown: Shown): void => {
    const judged = judgeShown(shown)
    problems.push(...judged.problems)
    for (const source of judged.sources) arrivedFrom.set(source, (arrivedFrom.get(source) ?? 0) + 1)
    arrived += judged.sources.length
  }
  const slow = await findSlowText({ random, tries: sizes[size].textsPerLanguage, say })
  problems.push(...slow.problems)
  while (arrived < sizes[size].marks && problems.length === 0) {
    const before = arrived
    await using home = await fakeHome()
    const recorded = new RecordedDisplays(home, cases)
    const live = new LiveDisplays(home, cases)
    judge(await recorded.chat(70))
    judge(await recorded.queue(100))
    judge(await recorded.treePanel(600))
    judge(await recorded.tree(1000))
    judge(await recorded.list(100))
    judge(await recorded.play(100))
    judge(await live.answer(600))
    judge(await live.print(3000))
    judge(await live.shell(400))
    judge(await live.permission(800))
    judge(await live.failure(5))
    say(`${arrived} cases`)
    if (arrived === before) problems.push('nothing arrives any more')
  }
  for (const [source, count] of arrivedFrom) say(`  ${count} from ${source}`)
  for (const problem of problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0 && arrived >= sizes[size].marks,
    figures: {
      cases: arrived,
      sources: arrivedFrom.size,
      slowTexts: slow.tried,
      slowestRatio: Math.round(slow.slowest * 10) / 10,
      problems: problems.length,
    },
  }
}

function judgeShown({ display, expected, bytes, done, replies }: Shown): { problems: string[]; sources: string[] } {
  const { arrived, problems } = scan(bytes)
  const missing = [...expected].filter(([number]) => !arrived.has(number))
  if (missing.length > mayBeMissing * expected.size) {
    const [first] = missing
    problems.push(`${missing.length} of ${expected.size} were not shown, such as ${first?.[0]} (${first?.[1]})`)
  }
  problems.push(...done)
  if (replies.length > ownQuestions) problems.push(`the terminal answered ${replies.length} times`)
  return {
    problems: problems.map((problem) => `${display}: ${problem}`),
    sources: [...arrived].flatMap((number) => expected.get(number) ?? []),
  }
}
