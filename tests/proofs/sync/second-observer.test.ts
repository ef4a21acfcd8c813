import { scriptedModel, script } from '@tapetree/agent/testing'
import { onlyModel } from '@tapetree/agent'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WireScreen } from '../../../packages/server/src/testing/wire-screen.ts'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { shown } from './referee.ts'
import { Stage } from './stage.ts'

const words = ['A ', 'long ', 'answer 😀', ' with ', 'many ', 'words.']

/** A model that says one word at a time, each when it is told to. */
async function speaking(): Promise<{ stage: Stage; sayNext: () => void; join: (id: string) => Promise<WireScreen> }> {
  const turns = words.map(() => Promise.withResolvers<void>())
  const said = script()
  for (const [index, word] of words.entries()) said.do(() => turns[index]?.promise).text(word)
  const models = onlyModel(scriptedModel(said))
  const stage = await Stage.open({ folder: temporaryFolder(), random: randomFrom(1), agent: { models } })
  const screens: WireScreen[] = []
  let next = 0
  const sayNext = (): void => turns[next++]?.resolve()
  const join = async (id: string): Promise<WireScreen> => {
    const screen = new WireScreen({ id, url: stage.url, headers: { authorization: `Bearer ${stage.token}` } })
    screens.push(screen)
    screen.connect()
    await screen.until(() => screen.isAttached)
    return screen
  }
  const close = async (): Promise<void> => {
    for (const turn of turns) turn.resolve()
    for (const screen of screens) screen.cut()
    await stage.close()
  }
  onTestFinished(close)
  return { stage, sayNext, join }
}

const inFlight = ({ transcript }: WireScreen): string =>
  [...transcript.inFlight.values()].flatMap(({ parts }) => parts.map(({ text }) => text)).join('')

test('FINDINGS: a second observer who joins in mid-answer is shown it from its first token', async () => {
  const { sayNext, join } = await speaking()
  const first = await join('first')
  first.command('prompt', { text: 'go' }, 'cmd-1')
  for (let index = 0; index < 4; index++) sayNext()
  // The last word may be held back: it could be the beginning of a key.
  const shownSoFar = words.slice(0, 3).join('')
  await first.until(() => inFlight(first).startsWith(shownSoFar))
  const second = await join('second')
  await second.until(() => inFlight(second).startsWith(shownSoFar))
  sayNext()
  sayNext()
  await second.until(() => second.transcript.lastRun !== null)
  expect(JSON.stringify([...second.transcript.path.items])).toContain(words.join(''))
})

test('a late joiner is shown what an early one is, from the first token and at every step', async () => {
  const { sayNext, join } = await speaking()
  const early = await join('early')
  early.command('prompt', { text: 'go' }, 'cmd-1')
  await early.until(() => early.transcript.run !== null)
  const screens = [early]
  for (const index of words.keys()) {
    screens.push(await join(`late-${index}`))
    await vi.waitFor(() => {
      for (const screen of screens) expect(shown(screen.transcript)).toEqual(shown(early.transcript))
      expect(inFlight(early).startsWith(words.slice(0, Math.max(0, index - 1)).join(''))).toBe(true)
    })
    sayNext()
  }
  await vi.waitFor(() => {
    for (const screen of screens) expect(shown(screen.transcript)).toEqual(shown(early.transcript))
    expect(early.transcript.lastRun).toMatchObject({ outcome: 'completed' })
  })
})
