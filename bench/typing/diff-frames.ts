import { setImmediate } from 'node:timers/promises'
import { diffTexts } from '../../packages/cli/src/text/line-diff.ts'
import { fitText } from '../../packages/cli/src/text/display-width.ts'
import { DiffPanel } from '../../packages/cli/src/tui/panels/diff-panel.ts'
import { themeFor } from '../../packages/cli/src/tui/theme.ts'

const lines = 5000
const rows = 50
const widths = [100, 160]
const framesInRound = 40
const keys = ['\u001b[6~', 'j', '\u001b[6~', 'k']

interface Frames {
  /** Milliseconds of each frame with the same rows as plain text. */
  bare: number[]
  /** Milliseconds of each frame of the diff, with the first one of each time it is opened. */
  shown: number[]
}

/** Opens a diff of 5,000 lines again and again, unified and side by side, and scrolls through it. */
export async function diffFrames(rounds: number): Promise<Frames> {
  const code = (isNew: boolean): string[] =>
    Array.from(
      { length: lines },
      (_, line) =>
        `  const value${line} = compute(${line}, 'some words', { isNew: ${isNew && line % 2 === 1} }) // as before`,
    )
  const [before, after] = [code(false), code(true)]
  const file = diffTexts({ name: 'values.ts', before: before.join('\n'), after: after.join('\n') })
  const theme = themeFor({ theme: 'dark', color: true })
  const frames: Frames = { bare: [], shown: [] }
  for (let round = 0; round < rounds; round++) {
    const width = widths[round % widths.length] ?? 100
    const panel = new DiffPanel({
      theme,
      title: 'Changes',
      files: [file],
      onChange: () => undefined,
      onClose: () => undefined,
    })
    panel.setRows(rows)
    for (let frame = 0; frame < framesInRound; frame++) {
      const from = frame * rows
      frames.bare.push(timeOf(() => after.slice(from, from + rows).map((line) => fitText(line, width))))
      frames.shown.push(timeOf(() => panel.render(width)))
      // The grammar is loaded meanwhile.
      await setImmediate()
      panel.handleInput(keys[frame % keys.length] ?? 'j')
    }
  }
  return frames
}

function timeOf(work: () => unknown): number {
  const start = performance.now()
  work()
  return performance.now() - start
}
