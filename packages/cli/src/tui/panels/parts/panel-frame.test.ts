import { visibleWidth } from '@earendil-works/pi-tui'
import { expect, test } from 'vitest'
import { FramedPanel, type FrameContent } from './panel-frame.ts'
import { plainTheme } from '../testing/panel-driver.ts'
import { hardWrapped } from './text-wrap.ts'

class Lines extends FramedPanel {
  handleInput(): void {}

  protected content(): FrameContent {
    const body = [
      '漢字👩‍👩‍👧 é combining e\u0301, and a line that is much longer than any of these screens is wide'.repeat(3),
      '',
    ]
    return {
      title: 'A title 漢字 of some length',
      aside: '1 of 3',
      hints: ['Enter take', 'Esc close'],
      body: () => body,
    }
  }
}

test('no line is wider than the screen, however narrow, and all are as wide as the frame', () => {
  const panel = new Lines(plainTheme)
  for (let width = 1; width < 90; width++) {
    const widths = panel.render(width).map(visibleWidth)
    expect(Math.max(...widths)).toBeLessThanOrEqual(width)
    if (width >= 12) expect(new Set(widths)).toEqual(new Set([width]))
  }
})

test('a wrapped command keeps every letter', () => {
  const command = 'echo  "a  b"   漢字漢字漢字'
  expect(hardWrapped(command, 6).join('')).toBe(command)
  expect(Math.max(...hardWrapped(command, 6).map(visibleWidth))).toBeLessThanOrEqual(6)
})
