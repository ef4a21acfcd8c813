import { execFileSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { loadSkills, parseSkill, type SkillPlace } from './skills.ts'

test('a skill has the fields of the standard', () => {
  const text = [
    '---',
    'name: pdf-forms',
    'description: >',
    '  Fills in forms.',
    '  Use it for PDF files.',
    'license: MIT',
    'compatibility: needs python',
    'allowed-tools: Bash(git add *) Read',
    'metadata:',
    '  version: 1.0',
    '  author: me',
    'something-else: [kept out]',
    '---',
    '',
    '# Forms',
    '',
  ].join('\n')
  expect(parseSkill(text, 'pdf-forms')).toEqual({
    type: 'skill',
    skill: {
      name: 'pdf-forms',
      description: 'Fills in forms. Use it for PDF files.',
      license: 'MIT',
      compatibility: 'needs python',
      allowedTools: ['Bash(git add *)', 'Read'],
      metadata: new Map([
        ['version', '1.0'],
        ['author', 'me'],
      ]),
      body: '# Forms',
    },
  })
})

test('tools may be a list, and only a name and a description are required', () => {
  expect(parseSkill('---\nname: a\ndescription: b\nallowed-tools: [read, bash]\n---\n', 'a')).toMatchObject({
    skill: { allowedTools: ['read', 'bash'] },
  })
  expect(parseSkill('---\nname: a\ndescription: b\nlicense:\nmetadata:\n---\n', 'a')).toEqual({
    type: 'skill',
    skill: { name: 'a', description: 'b', metadata: new Map(), body: '' },
  })
})

const letters = 'may only have lower-case letters, digits and single hyphens between them'

test.each([
  ['', 'a', 'its front matter has no `name`'],
  ['[a]', 'a', 'its front matter has no `name`'],
  ['A', 'A', `its name "A" ${letters}`],
  ['-a', '-a', `its name "-a" ${letters}`],
  ['a-', 'a-', `its name "a-" ${letters}`],
  ['a--b', 'a--b', `its name "a--b" ${letters}`],
  ['a_b', 'a_b', `its name "a_b" ${letters}`],
  ['../a', '../a', `its name "../a" ${letters}`],
  ['ä', 'ä', `its name "ä" ${letters}`],
  ['"a\\e[31m"', 'a', String.raw`its name "a\u{1b}[31m" ${letters}`],
  ['"a\\n"', 'a', String.raw`its name "a\n" ${letters}`],
  ['"a\\u202eb"', 'a', String.raw`its name "a\u{202e}b" ${letters}`],
  ['a'.repeat(65), 'a'.repeat(65), 'its name has more than 64 characters'],
  ['a', 'b\u001b[2J', String.raw`its name "a" differs from that of its folder, "b\u{1b}[2J"`],
])('the name %s in the folder %j is rejected', (name, folderName, problem) => {
  expect(parseSkill(`---\nname: ${name}\ndescription: d\n---\n`, folderName)).toEqual({ type: 'invalid', problem })
})

test('the longest name is accepted', () => {
  const name = 'a'.repeat(64)
  expect(parseSkill(`---\nname: ${name}\ndescription: d\n---\n`, name)).toMatchObject({ type: 'skill' })
})

test.each([
  ['name: a', 'its front matter has no `description`'],
  ['name: a\ndescription: "  "', 'its front matter has no `description`'],
  ['name: a\ndescription: [b]', 'its `description` is not a text'],
  [`name: a\ndescription: ${'x'.repeat(1025)}`, 'its `description` has more than 1024 characters'],
  [`name: a\ndescription: b\ncompatibility: ${'x'.repeat(501)}`, 'its `compatibility` has more than 500 characters'],
  ['name: a\ndescription: b\nlicense: {}', 'its `license` is not a text'],
  ['name: a\ndescription: b\nallowed-tools: [[a]]', 'its `allowed-tools` is neither a text nor a list of texts'],
  ['name: a\ndescription: b\nmetadata: c', 'its `metadata` is not a list of `name: text`'],
  ['name: a\ndescription: b\nmetadata: {c: [d]}', 'its `metadata` is not a list of `name: text`'],
  ['name: a\ndescription: b: c', expect.stringMatching(/not valid YAML.*needs quotes \(line 3\)$/)],
])('the front matter %j is rejected', (fields, problem) => {
  expect(parseSkill(`---\n${fields}\n---\n`, 'a')).toEqual({ type: 'invalid', problem })
})

test('1024 characters outside the basic plane are 1024 characters', () => {
  expect(parseSkill(`---\nname: a\ndescription: ${'🌳'.repeat(1024)}\n---\n`, 'a')).toMatchObject({ type: 'skill' })
})

test('a file without front matter is rejected', () => {
  expect(parseSkill('# A', 'a')).toEqual({
    type: 'invalid',
    problem: 'it does not begin with front matter between two lines ---',
  })
})

test('skills come in the order of folders and names, and the first with a name wins', async () => {
  await using folder = await TestFolder.make({
    'one/b/SKILL.md': skill('b', 'first'),
    'one/a/SKILL.md': skill('a', 'first'),
    'two/c/SKILL.md': skill('c', 'second'),
    'two/a/SKILL.md': skill('a', 'second'),
    'two/notes.md': 'no skill',
    'two/empty/README.md': 'no skill',
    'two/.hidden/SKILL.md': skill('.hidden', 'second'),
  })
  const { skills, problems } = await loadSkills([
    { folder: folder.at('one'), source: 'user' },
    { folder: folder.at('two'), source: 'extension' },
    { folder: folder.at('three'), source: 'config' },
  ])
  expect(skills.map(({ name, description, source }) => [name, description, source])).toEqual([
    ['a', 'first', 'user'],
    ['b', 'first', 'user'],
    ['c', 'second', 'extension'],
  ])
  expect(skills[0]).toMatchObject({ path: folder.at('one/a/SKILL.md'), folder: folder.at('one/a') })
  expect(problems).toEqual([
    `${folder.at('two/a/SKILL.md')} was left out: the skill "a" already exists, ${folder.at('one/a/SKILL.md')}.`,
  ])
})

test('a skill that is found by two paths is found once, without a collision', async () => {
  await using folder = await TestFolder.make({ 'one/a/SKILL.md': skill('a', 'x') })
  await symlink('one', folder.at('two'))
  const places: SkillPlace[] = [
    { folder: folder.at('one'), source: 'user' },
    { folder: folder.at('two'), source: 'config' },
    { folder: folder.at('one'), source: 'project' },
  ]
  const { skills, problems } = await loadSkills(places)
  expect(skills.map(({ source }) => source)).toEqual(['user'])
  expect(problems).toEqual([])
})

test('an unreadable skill is reported, and the others are loaded', async () => {
  await using folder = await TestFolder.make({
    'in/good/SKILL.md': skill('good', 'x'),
    'in/large/SKILL.md': skill('large', 'x') + 'x'.repeat(128 * 1024),
    'in/binary/SKILL.md': Buffer.from([0, 1, 2]),
    'in/\u001b]0;owned\u0007/SKILL.md': skill('owned', 'x'),
    'out/far/SKILL.md': skill('far', 'x'),
  })
  await symlink('../out/far', folder.at('in/far'))
  await mkdir(folder.at('in/pipe'))
  execFileSync('mkfifo', [folder.at('in/pipe/SKILL.md')])
  const { skills, problems } = await loadSkills([
    { folder: folder.at('in'), source: 'project', within: folder.at('in') },
  ])
  expect(skills.map(({ name }) => name)).toEqual(['good'])
  const at = (name: string): string => folder.at(`in/${name}/SKILL.md`)
  expect(problems).toEqual([
    `${at(String.raw`\u{1b}]0;owned\u{7}`)} was left out: its name "owned" differs from that of its folder, "${String.raw`\u{1b}]0;owned\u{7}`}".`,
    `${at('binary')} was left out: it is not text in UTF-8.`,
    `${at('far')} was left out: it leads out of ${folder.at('in')}.`,
    `${at('large')} was left out: it has more than ${128 * 1024} bytes.`,
    `${at('pipe')} was left out: it is not a regular file.`,
  ])
})

test('a skill folder that leads out of the repository is not even listed', async () => {
  await using folder = await TestFolder.make({ 'out/a/SKILL.md': skill('a', 'x'), 'in/x': '' })
  await symlink('../out', folder.at('in/skills'))
  const place: SkillPlace = { folder: folder.at('in/skills'), source: 'project', within: folder.at('in') }
  expect(await loadSkills([place])).toEqual({
    skills: [],
    problems: [`${folder.at('in/skills')} was left out: it leads out of ${folder.at('in')}.`],
  })
})

test('at most 256 skills are loaded, and the rest is reported', async () => {
  const names = Array.from({ length: 258 }, (_, index) => `s${String(index).padStart(3, '0')}`)
  await using folder = await TestFolder.make(
    Object.fromEntries(names.map((name) => [`${name}/SKILL.md`, skill(name, 'x')])),
  )
  const { skills, problems } = await loadSkills([{ folder: folder.path, source: 'user' }])
  expect(skills).toHaveLength(256)
  expect(problems).toEqual([
    `${folder.at('s256/SKILL.md')} was left out: the limit of 256 skills is reached.`,
    `${folder.at('s257/SKILL.md')} was left out: the limit of 256 skills is reached.`,
  ])
})

function skill(name: string, description: string): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\nDo it.\n`
}
