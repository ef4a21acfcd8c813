import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  changedFiles,
  parseDiff,
  replacementHunk,
  sideBySide,
  wordMarks,
  type DiffLine,
  type TextRange,
} from './diff.ts'

describe('a unified diff', () => {
  test('becomes files, hunks and lines with the line numbers of both sides', () => {
    const [file, ...others] = parseDiff(
      [
        '--- a/src/greet.ts',
        '+++ b/src/greet.ts',
        '@@ -1,3 +1,4 @@ function greet() {',
        ' one',
        '-two',
        '+zwei',
        '+drei',
        ' four',
        '@@ -10 +11 @@',
        '-last',
        '\\ No newline at end of file',
        '+end',
        '',
      ].join('\n'),
    )
    expect(others).toEqual([])
    expect(file).toEqual({
      oldName: 'src/greet.ts',
      newName: 'src/greet.ts',
      notes: [],
      hunks: [
        {
          section: 'function greet() {',
          lines: [
            { type: 'context', text: 'one', oldLine: 1, newLine: 1 },
            { type: 'removed', text: 'two', oldLine: 2 },
            { type: 'added', text: 'zwei', newLine: 2 },
            { type: 'added', text: 'drei', newLine: 3 },
            { type: 'context', text: 'four', oldLine: 3, newLine: 4 },
          ],
        },
        {
          section: '',
          lines: [
            { type: 'removed', text: 'last', oldLine: 10, isUnterminated: true },
            { type: 'added', text: 'end', newLine: 11 },
          ],
        },
      ],
    })
  })

  test('of Git has several files, and its other headers are notes', () => {
    const files = parseDiff(
      [
        'diff --git a/old.ts b/new.ts',
        'similarity index 90%',
        'rename from old.ts',
        'diff --git a/made.ts b/made.ts',
        'new file mode 100644',
        'index 0000000..fa2e86e',
        '--- /dev/null',
        '+++ b/made.ts',
        '@@ -0,0 +1 @@',
        '+made',
        'diff --git a/logo.png b/logo.png',
        'index fa2e86ed1cb1..f384549cbeb4 100644',
        'Binary files a/logo.png and b/logo.png differ',
        'diff --git something else',
        '--- one\t2026-01-01',
        '+++ two\t2026-01-01',
      ].join('\n'),
    )
    expect(files.map(({ oldName, newName, hunks }) => [oldName, newName, hunks.length])).toEqual([
      ['old.ts', 'new.ts', 0],
      [null, 'made.ts', 1],
      ['logo.png', 'logo.png', 0],
      ['one', 'two', 0],
    ])
    expect(files.map(({ notes }) => notes)).toEqual([
      ['similarity index 90%', 'rename from old.ts'],
      ['new file mode 100644'],
      ['Binary files a/logo.png and b/logo.png differ'],
      [],
    ])
  })

  test('keeps removed and added lines that look like headers', () => {
    const [file, second] = parseDiff(
      '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n-@@ -1 +1 @@\n+++ new\n+diff --git a/y b/y\n--- a/z\n+++ b/z\n@@ -1 +1 @@\n-a\n+b\n',
    )
    expect(textsOf(file?.hunks[0]?.lines ?? [])).toEqual(['--- old', '-@@ -1 +1 @@', '+++ new', '+diff --git a/y b/y'])
    expect(second?.newName).toBe('z')
  })

  test('that was cut off keeps the lines before the cut and notes what is there instead', () => {
    const [file] = parseDiff('--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n\n-b\n[… 200 lines omitted …]\n+c')
    expect(textsOf(file?.hunks[0]?.lines ?? [])).toEqual([' a', ' ', '-b'])
    expect(file?.notes).toEqual(['[… 200 lines omitted …]', '+c'])
  })

  test('without names or line numbers is one file of notes', () => {
    expect(parseDiff('hello\n\nworld')).toEqual([
      { oldName: null, newName: null, hunks: [], notes: ['hello', 'world'] },
    ])
    expect(parseDiff('')).toEqual([])
    expect(parseDiff('@@ -1 +1 @@\n\\ odd')).toEqual([
      { oldName: null, newName: null, hunks: [{ section: '', lines: [] }], notes: ['\\ odd'] },
    ])
    expect(parseDiff('--- a dash\ntext')[0]?.notes).toEqual(['--- a dash', 'text'])
  })

  test('is read back as it was written, for random files and hunks', () => {
    fc.assert(
      fc.property(fc.array(randomFile, { maxLength: 4 }), (files) => {
        const read = parseDiff(
          files
            .map(({ name, hunks }) => `--- a/${name}\n+++ b/${name}\n${hunks.map(({ text }) => text).join('')}`)
            .join(''),
        )
        expect(read.map(({ newName, notes }) => [newName, notes])).toEqual(files.map(({ name }) => [name, []]))
        expect(read.map(({ hunks }) => hunks.map(({ lines }) => textsOf(lines)))).toEqual(
          files.map(({ hunks }) => hunks.map(({ lines }) => lines)),
        )
      }),
    )
  })

  test('never loses a line and never throws, whatever the text is', () => {
    const line = fc.oneof(
      fc.constantFrom(
        '--- a/x',
        '+++ b/x',
        '@@ -1,2 +3 @@',
        '@@ -0,0 +1,9 @@ f',
        'diff --git a/x b/x',
        '',
        '\\ No newline',
      ),
      fc.constantFrom('+', '-', ' ').chain((sign) => fc.string().map((text) => sign + text.replaceAll('\n', ''))),
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), (lines) => {
        const files = parseDiff(lines.join('\n'))
        const shown = files.flatMap(({ hunks, notes }) => [...hunks.flatMap((hunk) => textsOf(hunk.lines)), ...notes])
        const told = lines.filter((text) => /^[+-]./.test(text) && !/^(?:---|\+\+\+) /.test(text))
        for (const text of told) expect(shown).toContain(text)
      }),
    )
  })
})

describe('the words that changed', () => {
  test('are marked in the removed and in the added line', () => {
    expect(marked('const total = a + b', 'const sum = a + c')).toEqual([
      'const [total] = a + [b]',
      'const [sum] = a + [c]',
    ])
    expect(marked('foo(a)', 'foo(a, b)')).toEqual(['foo(a)', 'foo(a[, b])'])
    expect(marked('same', 'same')).toEqual(['same', 'same'])
    expect(marked('', '')).toEqual(['', ''])
  })

  test('are not marked if hardly anything is the same', () => {
    expect(wordMarks('one two three', 'four five six')).toBeUndefined()
    expect(wordMarks('', 'x')).toBeUndefined()
  })

  test('are not marked in lines that would take long to compare', () => {
    expect(wordMarks('a'.repeat(2001), 'a')).toBeUndefined()
    expect(wordMarks('a', 'a'.repeat(2001))).toBeUndefined()
    expect(wordMarks(`x ${'a b '.repeat(200)}y`, `z ${'c d '.repeat(200)}w`)).toBeUndefined()
  })

  test('are all that differs: the rest of both lines is equal', () => {
    const line = fc
      .array(fc.constantFrom('a', 'bc', ' ', '.', 'é', '😀', '_x'), { maxLength: 25 })
      .map((all) => all.join(''))
    fc.assert(
      fc.property(line, line, (before, after) => {
        const marks = wordMarks(before, after)
        if (!marks) return
        expect(unmarked(before, marks.removed)).toBe(unmarked(after, marks.added))
      }),
    )
  })

  test('are found in pairs: the first removed line belongs to the first added line', () => {
    const { lines } = replacementHunk('let a = 1\nlet b = 2\n', 'let a = 10\nlet b = 20\nlet c = 30\n')
    expect(lines.map(({ type, text, marks }) => [type, text, marks?.length ?? 'none'])).toEqual([
      ['removed', 'let a = 1', 1],
      ['removed', 'let b = 2', 1],
      ['added', 'let a = 10', 1],
      ['added', 'let b = 20', 1],
      ['added', 'let c = 30', 'none'],
    ])
    expect(replacementHunk('', 'new').lines).toEqual([{ type: 'added', text: 'new' }])
    expect(replacementHunk('gone', '').lines).toEqual([{ type: 'removed', text: 'gone' }])
  })
})

function marked(before: string, after: string): string[] {
  const { removed, added } = wordMarks(before, after) ?? { removed: [], added: [] }
  return [withBrackets(before, removed), withBrackets(after, added)]
}

function withBrackets(text: string, ranges: readonly TextRange[]): string {
  return ranges
    .toReversed()
    .reduce((all, { start, end }) => `${all.slice(0, start)}[${all.slice(start, end)}]${all.slice(end)}`, text)
}

function unmarked(text: string, ranges: readonly TextRange[]): string {
  return ranges.toReversed().reduce((all, { start, end }) => all.slice(0, start) + all.slice(end), text)
}

function textsOf(lines: readonly DiffLine[]): string[] {
  const signs = { context: ' ', added: '+', removed: '-' }
  return lines.map(({ type, text }) => signs[type] + text)
}

const randomLine = fc
  .constantFrom('+', '-', ' ')
  .chain((sign) => fc.constantFrom('', 'a', '-- b', '++ c', '@@ -1 +1 @@', 'x y').map((text) => sign + text))
const randomHunk = fc.array(randomLine, { minLength: 1, maxLength: 8 }).map((lines) => {
  const count = (signs: string): number => lines.filter((line) => signs.includes(line.charAt(0))).length
  return { lines, text: `@@ -3,${count('- ')} +5,${count('+ ')} @@\n${lines.map((line) => `${line}\n`).join('')}` }
})
const randomFile = fc.record({
  name: fc.constantFrom('x.ts', 'src/y z.ts'),
  hunks: fc.array(randomHunk, { minLength: 1, maxLength: 3 }),
})

describe('the change of a call', () => {
  test('is the diff that the tool printed after its sentence', () => {
    expect(changedFiles({ path: 'a.ts' }, 'Edited a.ts.\n\n--- a.ts\n+++ a.ts\n@@ -1 +1 @@\n-old\n+new')).toEqual(
      parseDiff('--- a.ts\n+++ a.ts\n@@ -1 +1 @@\n-old\n+new'),
    )
  })

  test('is the requested change before there is a diff, whatever the model wrote', () => {
    const [edit] = changedFiles({ path: 'a.ts', oldText: 'old', newText: 'new' }, '')
    expect(edit).toMatchObject({ newName: 'a.ts', hunks: [{ lines: [{ text: 'old' }, { text: 'new' }] }] })
    const [write] = changedFiles({ path: 'b.ts', content: 'one\ntwo\n' }, 'Created b.ts.')
    expect(write?.hunks[0]?.lines.map(({ type, text }) => `${type} ${text}`)).toEqual(['added one', 'added two'])
    expect(changedFiles({ path: 5, oldText: null, content: ['x'] }, '')).toEqual([
      { oldName: null, newName: null, hunks: [{ section: '', lines: [] }], notes: [] },
    ])
  })
})

test('side by side, each side has its own lines in their order, and context stands on both', () => {
  const type = fc.constantFrom('context' as const, 'added' as const, 'removed' as const)
  fc.assert(
    fc.property(fc.array(type, { maxLength: 40 }), (types) => {
      const lines = types.map((each, index): DiffLine => ({ type: each, text: String(index) }))
      const pairs = sideBySide(lines)
      expect(pairs.flatMap(({ left }) => left ?? [])).toEqual(lines.filter(({ type: each }) => each !== 'added'))
      expect(pairs.flatMap(({ right }) => right ?? [])).toEqual(lines.filter(({ type: each }) => each !== 'removed'))
      for (const { left, right } of pairs) {
        expect(left ?? right).toBeDefined()
        if (left?.type === 'context' || right?.type === 'context') expect(left).toBe(right)
      }
    }),
  )
})
