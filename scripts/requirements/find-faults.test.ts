import { expect, test } from 'vitest'
import type { Manifest, Requirement } from '../../tests/requirements/requirement.ts'
import { findFaults } from './find-faults.ts'
import { readCitations } from './read-citations.ts'
import { digestOf, sectionsOf } from './specification.ts'

const markdown = `# Doc

More below.

## 1. World

* The sky is blue. The sea is:
1. deep
`

const sky: Requirement = {
  id: 'doc/1 sky',
  says: 'The sky has a color.',
  lines: { '1. World': [digestOf('The sky is blue.')] },
}
const sea: Requirement = {
  id: 'doc/1 sea',
  says: 'The sea has a depth.',
  lines: { '1. World': [digestOf('The sea is:'), digestOf('deep')] },
}
const manifest: Manifest = {
  document: 'doc',
  requirements: [sky, sea],
  withoutBehavior: { Doc: { 'opening line': [digestOf('More below.')] } },
}

const proved = [{ file: 'a.test.ts', line: 1, ids: ['doc/1 sky', 'doc/1 sea'] }]

const faultsIn = (changes: Partial<Manifest>, text = markdown): string[] =>
  findFaults({
    manifests: [{ ...manifest, ...changes }],
    citations: proved,
    specification: new Map([['doc', sectionsOf(text)]]),
  })

test('a manifest without faults accounts for every line, and scenarios prove every requirement', () => {
  expect(faultsIn({})).toEqual([])
})

test('a requirement without a scenario is a fault', () => {
  expect(
    findFaults({ manifests: [manifest], citations: [{ file: 'a.test.ts', line: 1, ids: ['doc/1 sky'] }] }),
  ).toEqual(['No scenario proves doc/1 sea.'])
})

test('a scenario that cites an unknown id, too many ids or none is a fault', () => {
  const ids = ['doc/1 sky', 'doc/1 sea', 'doc/1 sky', 'doc/9 moon']
  const citations = [
    { file: 'a.test.ts', line: 7, ids },
    { file: 'b.test.ts', line: 2, ids: [] },
  ]
  expect(findFaults({ manifests: [manifest], citations })).toEqual([
    'a.test.ts:7: there is no requirement doc/9 moon.',
    'a.test.ts:7: a scenario cites 4 requirements, at most 3 are allowed.',
    'b.test.ts:2: a scenario cites no requirement, or none that this check can read.',
  ])
})

test('a new line of the specification is a fault until the manifest accounts for it', () => {
  expect(faultsIn({}, `${markdown}## 2. Moon\n| round |\n`)).toEqual([
    `doc, "2. Moon": the manifest does not account for ${digestOf('| round |')}: | round |`,
  ])
})

test('a changed line of the specification is a fault twice: as a new line and as a missing one', () => {
  expect(faultsIn({}, markdown.replace('blue', 'green'))).toEqual([
    `doc, "1. World": the manifest does not account for ${digestOf('The sky is green.')}: The sky is green.`,
    `doc/1 sky: "1. World" has no line with the digest ${digestOf('The sky is blue.')}.`,
  ])
})

test('a line that moves to another section is a fault', () => {
  expect(faultsIn({}, markdown.replace('1. deep', '## 2. Sea\n- deep'))).toEqual([
    `doc, "2. Sea": the manifest does not account for ${digestOf('deep')}: deep`,
    `doc/1 sea: "1. World" has no line with the digest ${digestOf('deep')}.`,
  ])
})

test('a new heading without lines is a fault, because only its words can state something', () => {
  expect(faultsIn({}, `${markdown}## 2. No moon\n`)).toEqual([
    'doc: there are no lines below the heading "2. No moon".',
  ])
})

test('a document without a manifest and a manifest without its document are faults', () => {
  const specification = new Map([['other', sectionsOf(markdown)]])
  expect(findFaults({ manifests: [manifest], citations: proved, specification })).toEqual([
    'other.md has no manifest.',
    'doc.md is missing.',
  ])
})

test('the amount of white space in a line, list marks and code fences do not matter', () => {
  const other = markdown.replace('* The', '```\n```\n   -   The').replace('sky is', 'sky  is')
  expect(faultsIn({}, other)).toEqual([])
})

test('code and table rows are not split into sentences', () => {
  const [section] = sectionsOf('# Doc\n| One. Two. |\n```\n// Three. Four.\n```\n')
  expect(section?.statements.map(({ text }) => text)).toEqual(['| One. Two. |', '// Three. Four.'])
})

test('a line without behavior must exist, and no requirement may stand for it', () => {
  const withoutBehavior: Manifest['withoutBehavior'] = {
    Doc: { 'opening line': [digestOf('More below.'), digestOf('More above.')] },
    '1. World': { 'work plan': [digestOf('deep')] },
  }
  expect(faultsIn({ withoutBehavior })).toEqual([
    `doc: "Doc" has no line with the digest ${digestOf('More above.')}.`,
    `doc, "1. World": ${digestOf('deep')} is listed without behavior, but a requirement stands for it.`,
  ])
})

test('open and excused requirements need no scenario and must have none', () => {
  const requirements = [
    { ...sky, open: 'The sky is missing.' },
    { ...sea, excused: 'There is no sea.' },
  ]
  const manifests = [{ ...manifest, requirements }]
  expect(findFaults({ manifests, citations: [] })).toEqual([])
  expect(findFaults({ manifests, citations: proved })).toEqual([
    'doc/1 sky is open, but a scenario proves it.',
    'doc/1 sea is excused, but a scenario proves it.',
  ])
})

test('a repeated id, an empty sentence and a requirement without lines are faults', () => {
  const requirements = [sky, sea, { ...sky, says: '', lines: {} }]
  expect(faultsIn({ requirements })).toEqual([
    'Two requirements have the id doc/1 sky.',
    'doc/1 sky says nothing.',
    'doc/1 sky stands for no line of the specification.',
  ])
})

test('without the specification, everything else is still checked', () => {
  const requirements = [sky, { ...sea, lines: { '9. Nowhere': ['0'] } }, { ...sky, says: '' }]
  expect(findFaults({ manifests: [{ ...manifest, requirements }], citations: proved })).toEqual([
    'Two requirements have the id doc/1 sky.',
    'doc/1 sky says nothing.',
  ])
})

test('citations are read from the text of a file, over several lines, and not from comments', () => {
  const call = 'verifies'
  const source = [
    `import { verifies } from './verifies.ts'`,
    `${call}(['doc/1 sky'], 'the sky [is] blue', () => {})`,
    `// ${call}(['doc/1 old'], 'gone', () => {})`,
    `${call}(`,
    `  ['doc/1 sky', "doc/1 sea"],`,
    `  'both', () => {})`,
    `/* ${call}(['doc/1 older'], 'gone', () => {}) */`,
  ].join('\n')
  expect(readCitations('a.test.ts', source)).toEqual([
    { file: 'a.test.ts', line: 2, ids: ['doc/1 sky'] },
    { file: 'a.test.ts', line: 4, ids: ['doc/1 sky', 'doc/1 sea'] },
  ])
})
