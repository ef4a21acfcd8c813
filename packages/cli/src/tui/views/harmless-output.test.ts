import { visibleWidth } from '@earendil-works/pi-tui'
import { text } from '@tapetree/session'
import type { TranscriptItem } from '@tapetree/session/view'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { footerLine } from './footer.ts'
import { plainItem } from './plain-item.ts'
import { renderItem } from './render-item.ts'
import { statusLine } from './status-line.ts'
import { call, Talk, talkTime } from './testing/talk.ts'
import { TranscriptView } from './transcript-view.ts'

const theme = themeFor({ theme: 'dark', color: true })

/** The colors of a theme; foreign text never contains them. */
const ownColors = /\u001b\[(?:\d{1,2})(?:;\d{1,3})*m/g
// oxlint-disable-next-line no-misleading-character-class
const dangerous = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const evil = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\u001b[2J',
        '\u001b[31m',
        '\u001b]0;title\u0007',
        '\u001b]8;;http://x\u001b\\',
        '\u001b]52;c;YQ==\u0007',
        '\u001bP$q\u001b\\',
        '\u009b5m',
        '\u009d0;x\u009c',
        '\u001b',
        '[',
        'm',
        ']',
        '\u0007',
        '\u0008',
        '\r',
        '\r\n',
        '\n',
        '\t',
        '\u0000',
        '\u202e',
        '\u001b[200~',
        '**',
        '`',
        '```\n',
        '| a | b |\n|---|---|\n',
        '- ',
        '# ',
        '> ',
        '[a](',
        '<b>',
        '\ud800',
        '漢',
        '👩‍🚀',
        'word ',
        '&#27;',
        '\\u001b',
        'é',
      ),
      fc.string({ unit: 'binary', maxLength: 6 }),
    ),
    { maxLength: 25 },
  )
  .map((pieces) => pieces.join(''))

function everyItem(words: string): Talk {
  const image = { type: 'image', image: { source: { type: 'url', mediaType: words, data: words } } } as const
  return new Talk()
    .message({ role: 'user', content: [text(words), image] })
    .message({
      role: 'assistant',
      content: [
        { type: 'reasoning', reasoning: { text: words } },
        text(words),
        image,
        call('a', 'bash', { command: words }),
        call('b', 'edit', { path: words, oldText: words, newText: words }),
        call('c', 'todo_write', { items: [{ text: words, status: 'pending' }] }),
        call('d', 'ask_user', { question: words }),
        call('e', words, { [words]: words, other: 1 }),
        call('f', 'write', { path: words, content: words }),
      ],
      error: { kind: words, message: words },
    })
    .result('a', `${words}\n\n[${words}]`)
    .result('b', `Edited.\n\n${words}`)
    .result('d', [text(words), image])
    .result('e', `Not run: ${words}`, true)
    .message({ role: 'bashExecution', content: [], bashExecution: { command: words, output: words, exitCode: 0 } })
    .entry('model_change', { modelChange: { provider: words, modelId: words } })
    .entry('thinking_level', { thinkingLevel: { thinkingLevel: words } })
    .entry('compaction', { compaction: { summary: words, firstKeptEntryId: 'e1', tokensBefore: 1 } })
    .entry('branch_summary', { branchSummary: { summary: words, fromId: 'e1' } })
    .message({ role: 'custom', content: [text(words), image] })
    .message({ role: 'custom', content: [text(`<diagnostics>\nNew:\n${words}:1:1 error: ${words}\n</diagnostics>`)] })
    .entry('custom', { custom: { customType: words, data: { [words]: words } } })
    .entry('gap', { gap: { reason: words } })
    .result(words, words)
    .record('run_start', { runStart: { runId: 'r', leafId: null } })
    .record('permission_request', { permissionRequest: { requestId: 'q', tool: words, title: words, options: [] } })
    .record('error', { error: { message: words, kind: words } })
    .live('draft', 'text', words)
    .live('draft', 'reasoning', words, 1)
    .live('draft', 'tool_input', words, 2)
    .live('shell', 'tool_output', words)
}

function check(lines: readonly string[], width: number): void {
  const wrong = lines.filter((line) => {
    const bare = line.replaceAll(ownColors, '')
    return dangerous.test(bare) || !bare.isWellFormed() || visibleWidth(line) > width
  })
  expect(wrong).toEqual([])
}

test('whatever the text, only our own colors are emitted, and no line is too long', () => {
  fc.assert(
    fc.property(evil, fc.integer({ min: 12, max: 90 }), fc.boolean(), (words, width, isUnfolded) => {
      const { transcript } = everyItem(words)
      const items = transcript.path.items.slice()
      const types = new Set<TranscriptItem['type']>(items.map(({ type }) => type))
      expect(types.size).toBe(10)
      for (const item of items) {
        check(renderItem(item, { theme, isUnfolded })(width), width)
        check(plainItem(item), Infinity)
      }
      const view = new TranscriptView({ theme, now: () => talkTime })
      view.update(transcript)
      view.setRows(2000)
      if (isUnfolded) view.toggleDetails()
      check(view.render(width), width)
      const run = { runId: 'r', isBusy: true, waitingFor: null }
      check([statusLine({ transcript, run, width, theme, now: talkTime }) ?? ''], width)
      const config = { model: { provider: words, modelId: words }, thinkingLevel: words, mode: words }
      const access = { type: 'attached', where: words } as const
      check(
        [footerLine({ config, usage: undefined, run: null, access, presence: [], width, theme, now: talkTime })],
        width,
      )
    }),
    { numRuns: 60 },
  )
})
