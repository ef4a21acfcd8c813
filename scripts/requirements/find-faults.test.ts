import { expect, test } from 'vitest'
import type { Manifest, Requirement } from '../../tests/requirements/requirement.ts'
import { findFaults } from './find-faults.ts'
import { readCitations } from './read-citations.ts'

const manifest: Manifest = {
  document: 'doc',
  requirements: [
    { id: 'doc/1 sky', quote: 'The sky is blue.' },
    { id: 'doc/1 sea', quote: 'The sea is:\ndeep' },
  ],
  outline: [
    { heading: '# Doc', items: [] },
    { heading: '## 1. World', items: ['The sky is blue.', 'The sea is:', 'deep', 'More below.'] },
  ],
  noBehaviour: [{ text: 'More below.', reason: 'It leads over.' }],
}

const proved = [{ file: 'a.test.ts', line: 1, ids: ['doc/1 sky', 'doc/1 sea'] }]

test('a manifest that quotes everything and is proved has no faults', () => {
  expect(findFaults([manifest], proved)).toEqual([])
})

test('a requirement that no scenario cites is named', () => {
  expect(findFaults([manifest], [{ file: 'a.test.ts', line: 1, ids: ['doc/1 sky'] }])).toEqual([
    'No scenario proves doc/1 sea.',
  ])
})

test('a scenario that cites an unknown id, too many or none is named with its place', () => {
  const ids = ['doc/1 sky', 'doc/1 sea', 'doc/1 sky', 'doc/9 moon']
  expect(
    findFaults(
      [manifest],
      [
        { file: 'a.test.ts', line: 7, ids },
        { file: 'b.test.ts', line: 2, ids: [] },
      ],
    ),
  ).toEqual([
    'a.test.ts:7: there is no requirement doc/9 moon.',
    'a.test.ts:7: a scenario cites 4 requirements, at most 3 are allowed.',
    'b.test.ts:2: a scenario cites nothing that can be read from its text.',
  ])
})

test('a sentence that nothing quotes, and a heading with nothing below it, are listed', () => {
  const outline = [...manifest.outline, { heading: '## 2. Moon', items: ['The moon is round.'] }]
  expect(findFaults([{ ...manifest, outline }], proved)).toEqual([
    'doc: no requirement quotes: The moon is round.',
    'doc: nothing below this heading is quoted: ## 2. Moon',
  ])
})

test('a heading may be excused, but not the sentences below it with it', () => {
  const outline = [...manifest.outline, { heading: '## 2. Moon', items: ['The moon is round.'] }]
  const noBehaviour = [...manifest.noBehaviour, { text: '## 2. Moon', reason: 'It is another world.' }]
  expect(findFaults([{ ...manifest, outline, noBehaviour }], proved)).toEqual([
    'doc: no requirement quotes: The moon is round.',
  ])
  const stale = [...manifest.noBehaviour, { text: '## 1. World', reason: 'It is this one.' }]
  expect(findFaults([{ ...manifest, noBehaviour: stale }], proved)).toEqual([
    'doc: excused, but not there or quoted: ## 1. World',
  ])
})

test('what is deferred to a later part needs no scenario, and must have none', () => {
  const [sky, sea] = manifest.requirements as [Requirement, Requirement]
  const requirements = [sky, { ...sea, deferred: 'server' as const }]
  expect(findFaults([{ ...manifest, requirements }], [{ file: 'a.test.ts', line: 1, ids: ['doc/1 sky'] }])).toEqual([])
  expect(findFaults([{ ...manifest, requirements }], proved)).toEqual([
    'doc/1 sea is deferred to the server, and a scenario proves it.',
  ])
})

test('a quote that is not in the document, an id used twice and a stale excuse are listed', () => {
  const requirements = [...manifest.requirements, { id: 'doc/1 sky', quote: 'The sky is green.' }]
  const noBehaviour = [...manifest.noBehaviour, { text: 'deep', reason: 'It is only one word.' }]
  expect(findFaults([{ ...manifest, requirements, noBehaviour }], proved)).toEqual([
    'Two requirements have the id doc/1 sky.',
    'doc/1 sky quotes what doc does not say.',
    'doc: excused, but not there or quoted: deep',
  ])
})

test('citations are read from the text, also over several lines, and not from comments', () => {
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
