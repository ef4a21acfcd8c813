import { symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { loadTemplates, parseTemplate } from './templates.ts'

test('a template has a description and a hint for its arguments', () => {
  const text = '---\ndescription: Looks at a change.\nargument-hint: <file> [reason]\n---\n\nReview $1.\n'
  expect(parseTemplate(text, 'review')).toEqual({
    type: 'template',
    template: {
      name: 'review',
      description: 'Looks at a change.',
      argumentHint: '<file> [reason]',
      body: 'Review $1.',
    },
  })
})

test('without front matter the first line is the description', () => {
  expect(parseTemplate('# Review\n\nLook at $1.', 'review')).toEqual({
    type: 'template',
    template: { name: 'review', description: '# Review', body: '# Review\n\nLook at $1.' },
  })
})

test('a hint in brackets is kept as text', () => {
  expect(parseTemplate('---\nargument-hint: [file]\n---\nx', 'a')).toMatchObject({
    template: { argumentHint: '[file]' },
  })
})

test('a description is one visible line of bounded length', () => {
  const parsed = parseTemplate(`---\ndescription: "a\\n\\e[31mb"\nargument-hint: ${'x'.repeat(300)}\n---\nx`, 'a')
  expect(parsed).toMatchObject({
    template: { description: String.raw`a \u{1b}[31mb`, argumentHint: `${'x'.repeat(200)}…` },
  })
})

test.each(['', 'a b', '../a', 'a.b', '-a', 'skill:a', '\u001b[2J', 'ä', 'a'.repeat(65)])(
  'the name %j is rejected',
  (name) => {
    const problem = 'its name must have at most 64 letters, digits, hyphens and underscores'
    expect(parseTemplate('x', name)).toEqual({ type: 'invalid', problem })
  },
)

test('an empty template and malformed front matter are rejected', () => {
  expect(parseTemplate('---\ndescription: x\n---\n \n', 'a')).toEqual({ type: 'invalid', problem: 'it is empty' })
  expect(parseTemplate('---\na: 1\na: 2\n---\nx', 'a')).toEqual({
    type: 'invalid',
    problem: 'the front matter has `a` twice (line 3)',
  })
})

test('templates are the Markdown files of a folder, and the first with a name wins', async () => {
  await using folder = await TestFolder.make({
    'one/b.md': 'first',
    'one/a.md': 'first',
    'one/notes.txt': 'none',
    'one/deep/c.md': 'none',
    'two/a.md': 'second',
    'two/d.md': 'second',
    'two/\u001b[31m.md': 'hostile',
    'two/large.md': 'x'.repeat(64 * 1024 + 1),
    'far.md': 'outside',
  })
  await symlink('../far.md', folder.at('two/far.md'))
  await symlink('d.md', folder.at('two/e.md'))
  const { templates, problems } = await loadTemplates([
    { folder: folder.at('one'), source: 'config' },
    { folder: folder.at('two'), source: 'project', within: folder.at('two') },
    { folder: folder.at('three'), source: 'extension' },
  ])
  expect(templates.map(({ name, body, source, path }) => [name, body, source, path])).toEqual([
    ['a', 'first', 'config', folder.at('one/a.md')],
    ['b', 'first', 'config', folder.at('one/b.md')],
    ['d', 'second', 'project', folder.at('two/d.md')],
  ])
  expect(problems).toEqual([
    `${folder.at(String.raw`two/\u{1b}[31m.md`)} was left out: its name must have at most 64 letters, digits, hyphens and underscores.`,
    `${folder.at('two/a.md')} was left out: the template "a" already exists, ${folder.at('one/a.md')}.`,
    `${folder.at('two/far.md')} was left out: it leads out of ${folder.at('two')}.`,
    `${folder.at('two/large.md')} was left out: it has more than ${64 * 1024} bytes.`,
  ])
})
