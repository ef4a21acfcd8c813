import type { RequestAnswer, OpenQuestion } from '@tapetree/client'
import { expect, test } from 'vitest'
import { diffTexts } from '../../text/line-diff.ts'
import { PermissionDialog } from './permission-dialog.ts'
import { darkTheme, golden, plainTheme, press } from './testing/panel-driver.ts'

test('shows the full command, the reason and every option', async () => {
  const { dialog } = open([request('a'), request('b')])
  await expect(golden(dialog)).toMatchFileSnapshot('golden/permission-dialog.txt')
})

test('the folder of a command is named only if it is another than the working folder, and short', () => {
  const titled = (folder: string): string[] => {
    const ask = request('a', { title: `Run in ${folder}: npm ci\nbecause`, input: { command: 'npm ci' } })
    const shown = open([ask], { cwd: '/home/me/shop', home: '/home/me' }).dialog.render(80)
    return shown.slice(1, 3).map((line) => line.replaceAll(/^│ | *│$/g, ''))
  }
  expect(titled('/home/me/shop')).toEqual(['$ npm ci', ''])
  expect(titled('/home/me/shop/web')).toEqual(['Run in ./web:', '$ npm ci'])
  expect(titled('/home/me/shopping')).toEqual(['Run in ~/shopping:', '$ npm ci'])
  expect(titled('/srv/shop')).toEqual(['Run in /srv/shop:', '$ npm ci'])
})

test('a choice names the working folder as this folder', () => {
  const label = 'Allow in this session: writing in /repo, `node /repo/x`, writing in /repo/a, writing in /repository'
  const options = [{ optionId: 'a', label, kind: 'allow_always' as const }]
  const shown = open([request('a', { options })], { cwd: '/repo' })
    .dialog.render(160)
    .join('\n')
  expect(shown).toContain(
    'Allow in this session: writing in this folder, `node /repo/x`, writing in ./a, writing in /repository',
  )
})

test('a digit, or the arrows with Enter, answers, and the next request appears', () => {
  const { dialog, answers, clock, closed } = open([request('a'), request('b')])
  press(dialog, '2')
  clock.pass(dialog)
  press(dialog, 'down', 'down', 'enter')
  expect(answers).toEqual([
    ['a', { optionId: 'allow_always' }],
    ['b', { optionId: 'reject_once' }],
  ])
  expect(closed()).toBe(1)
})

test('a rejection can give a reason', () => {
  const { dialog, answers } = open([request('a')])
  press(dialog, '4', 'use npm', 'enter')
  expect(answers).toEqual([['a', { optionId: 'reject_once', text: 'use npm' }]])
})

test('keys count only once the keyboard has been quiet for 300 ms after it appeared', () => {
  const { dialog, answers, clock } = open([request('a')], { isJustShown: true })
  press(dialog, '1')
  clock.now += 299
  press(dialog, '1', 'enter')
  expect(dialog.render(80).join('\n')).toContain('That key was ignored')
  clock.now += 300
  press(dialog, '1')
  expect(answers).toEqual([['a', { optionId: 'allow_once' }]])
})

test('a command longer than the screen shows how much is hidden, and can be scrolled', () => {
  const command = Array.from({ length: 60 }, (_, index) => `echo step-${index + 1}`).join('\n')
  const { dialog } = open([request('a', { title: `Run in /work: ${command}\nIt is not allowed by a rule.` })])
  dialog.setRows(20)
  expect(dialog.render(60)).toHaveLength(20)
  expect(dialog.render(60).join('\n')).toMatch(/▼ \d+ lines below/)
  const seen = new Set<string>()
  for (let page = 0; page < 12; page++) {
    for (const step of dialog
      .render(60)
      .join('\n')
      .match(/step-\d+/g) ?? [])
      seen.add(step)
    press(dialog, 'pageDown')
  }
  expect(seen.size).toBe(60)
})

test('a request answered elsewhere disappears and names who answered', () => {
  const { dialog, answers, clock, closed } = open([request('a'), request('b')])
  dialog.dismiss('phone allowed it.')
  expect(dialog.render(80).join('\n')).toContain('phone allowed it.')
  clock.pass(dialog)
  dialog.update([])
  expect(dialog.render(80).join('\n')).toContain('This was answered on another screen.')
  clock.pass(dialog)
  // The session continues and reports the same state repeatedly.
  dialog.update([])
  press(dialog, '1')
  expect([answers, closed()]).toEqual([[], 1])
})

test('nothing in a request can be hidden or reach the terminal', () => {
  const hidden = request('a', {
    title: 'Run in /w: rm -rf \u001b[8mx\u001b[2J\u202e\u200b\u00a0y\nbecause',
    input: { note: 'a\u001b]52;c;x\u0007' },
  })
  const shown = open([hidden], { theme: darkTheme }).dialog.render(80).join('\n')
  expect(shown).toContain('rm -rf x\u241b[2J\ufffd\\u{200b}\\u{a0}y')
  expect(shown.replaceAll(/\u001b\[[0-9;]*m/g, '')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u200b]/)
})

test('a change is a diff with its place in the file, the path once, and the choices', async () => {
  const input = { path: 'src/a.ts', oldText: 'two', newText: 'three' }
  const change = request('a', { tool: 'edit', title: 'Write /repo/src/a.ts\nIt writes /repo/src/a.ts.', input })
  const loaded = Promise.withResolvers<void>()
  const { dialog } = open([change], {
    cwd: '/repo',
    preview: async () => [diffTexts({ name: 'src/a.ts', before: 'one\ntwo\n', after: 'one\nthree\n' })],
    onChange: () => loaded.resolve(),
  })
  const before = dialog.render(80).join('\n')
  expect(before).toMatch(/- two .*\n.*\+ three/)
  await loaded.promise
  const shown = dialog.render(80).map((line) => line.replaceAll(/^│ | *│$/g, ''))
  expect(shown.slice(1, 6)).toEqual(['src/a.ts  +1 −1', '  1   one', '  2 - two', '  2 + three', ''])
  expect(shown.join('\n').match(/a\.ts/g)).toHaveLength(1)
})

test('f shows a long change on the whole screen, and nothing of it is cut', () => {
  const content = Array.from({ length: 90 }, (_, index) => `line-${index + 1}`).join('\n')
  const { dialog } = open([request('a', { tool: 'write', title: 'Write /repo/a', input: { path: 'a', content } })])
  press(dialog, 'f')
  expect(dialog.isFullScreen).toBe(true)
  const seen = new Set<string>()
  for (let page = 0; page < 20; page++) {
    for (const line of dialog
      .render(60)
      .join('\n')
      .match(/line-\d+/g) ?? [])
      seen.add(line)
    press(dialog, 'pageDown')
  }
  expect(seen.size).toBe(90)
  press(dialog, 'escape')
  expect(dialog.isFullScreen).toBe(false)
})

test('nothing in a change can be hidden or reach the terminal', () => {
  const content = 'a\u001b[2J\u202eb\u200bc\td\u001b[31m'
  const change = request('a', { tool: 'write', title: 'Write /w/x', input: { path: 'x', content } })
  const shown = open([change], { theme: darkTheme }).dialog.render(80).join('\n')
  expect(shown).toContain('a\u241b[2J\ufffdb\\u{200b}c    d')
  expect(shown.replaceAll(/\u001b\[[0-9;]*m/g, '')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u200b]/)
})

function open(
  requests: OpenQuestion[],
  {
    isJustShown = false,
    theme = plainTheme,
    ...options
  }: { isJustShown?: boolean } & Partial<ConstructorParameters<typeof PermissionDialog>[0]> = {},
) {
  const answers: [string, RequestAnswer][] = []
  let closed = 0
  const clock = {
    now: 0,
    /** The user looks, and reads. */
    pass: (shown: PermissionDialog) => {
      shown.render(80)
      clock.now += 1000
    },
  }
  const dialog = new PermissionDialog({
    ...options,
    theme,
    requests,
    now: () => clock.now,
    onAnswer: (requestId, answer) => answers.push([requestId, answer]),
    onClose: () => closed++,
  })
  dialog.render(80)
  if (!isJustShown) clock.pass(dialog)
  return { dialog, answers, clock, closed: () => closed }
}

function request(requestId: string, changes: Partial<OpenQuestion> = {}): OpenQuestion {
  return {
    requestId,
    tool: 'bash',
    title:
      'Run in /code/project: npm install left-pad && node build.js --out "dist folder"\nThe command is not allowed by a rule.',
    input: { command: 'npm install left-pad && node build.js --out "dist folder"', timeout: 60 },
    options: [
      { optionId: 'allow_once', label: 'Allow once', kind: 'allow_once' },
      {
        optionId: 'allow_always',
        label: 'Allow in this session: `npm install *`, `node build.js *`',
        kind: 'allow_always',
      },
      { optionId: 'reject_once', label: 'Do not allow', kind: 'reject_once' },
    ],
    ...changes,
  }
}
