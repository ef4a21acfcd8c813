import { describe, expect, test } from 'vitest'
import { findWords, fold, matchExpression, termsOf, wordsOf, type FoundTerms } from './search-text.ts'

const none: FoundTerms = { terms: [], isComplete: true }

function termsIn(text: string): string[] {
  const { words, pairs } = termsOf(fold(text))
  return [...words, ...pairs]
}

async function expressionOf(query: string, found: FoundTerms = none): Promise<string | undefined> {
  return matchExpression(wordsOf(query), async () => found)
}

describe('folding', () => {
  test('case, accents and compatibility forms make no difference', () => {
    expect(['Éclair', 'e\u0301CLAIR', 'ＥＣＬＡＩＲ', 'éclair'].map(fold)).toEqual(Array(4).fill('eclair'))
  })

  test('marks that make a different letter stay', () => {
    expect(fold('ガ')).toBe('ガ')
    expect(fold('ｶﾞ')).toBe('ガ')
    expect(fold('ไม้')).not.toBe(fold('ไม'))
  })
})

describe('terms', () => {
  test('are runs of letters and digits, each once', () => {
    expect(termsIn('Run foo_bar-2, then RUN it!')).toEqual(['run', 'foo', 'bar', '2', 'then', 'it'])
    expect(termsIn('Ünder_übung ünder')).toEqual(['under', 'ubung'])
  })

  test('are overlapping pairs and the last character in scripts without spaces', () => {
    expect(termsIn('検索する')).toEqual(['検索', '索す', 'する', 'る'])
    expect(termsIn('한국어')).toEqual(['한국', '국어', '어'])
    expect(termsIn('使abcう')).toEqual(['abc', '使', 'う'])
    expect(termsIn('𠮷野家')).toEqual(['𠮷野', '野家', '家'])
  })

  test('are single symbols', () => {
    expect(termsIn('a → b 🚀')).toEqual(['a', 'b', '→', '🚀'])
  })

  test('are cut at 64 characters', () => {
    expect(termsIn('x'.repeat(100))).toEqual(['x'.repeat(64)])
    expect(termsIn('ж'.repeat(100))).toEqual(['ж'.repeat(64)])
    expect(termsIn(`a${'𐐨'.repeat(100)}`)).toEqual([`a${'𐐨'.repeat(31)}`])
  })

  test('are found in a megabyte of any text without delay', () => {
    for (const text of ['a', 'é', '検', '-', ' ', '\u0300', '🚀', 'a検'].map((piece) => piece.repeat(500_000))) {
      const start = process.cpuUsage()
      termsOf(fold(text))
      wordsOf(text)
      findWords(text, ['b'])
      expect(process.cpuUsage(start).user).toBeLessThan(3_000_000)
    }
  })
})

describe('a full-text query', () => {
  test('requires every word, and matches all words that contain the part', async () => {
    expect(await expressionOf('Session log', { terms: ['obsession', 'session'], isComplete: true })).toBe(
      '("obsession" OR "session") AND ("log"* OR "obsession" OR "session")',
    )
  })

  test('also uses prefixes if too many words contain a part', async () => {
    expect(await expressionOf('session', { terms: ['obsession', 'sessions'], isComplete: false })).toBe(
      '("session"* OR "obsession")',
    )
  })

  test('is skipped if no word contains the part', async () => {
    expect(await expressionOf('nothing')).toBeUndefined()
  })

  test('matches short words only as prefixes', async () => {
    expect(await expressionOf('a go')).toBe('"a"* AND "go"*')
  })

  test('matches pairs, and a single character as the start of one', async () => {
    expect(await expressionOf('検索す 検 🚀')).toBe('"検索" AND "索す" AND "検"* AND "🚀"*')
  })

  test('takes no syntax from the input', async () => {
    expect(await expressionOf('" OR * NEAR( -^ {', { terms: ['x"y'], isComplete: false })).toBe(
      '"or"* AND ("near"* OR "x""y")',
    )
  })

  test('looks up at most sixteen words', async () => {
    const many = Array.from({ length: 30 }, (_, index) => `w${index}`).join(' ')
    expect((await expressionOf(many, { terms: ['x'], isComplete: true }))?.split(' AND ')).toHaveLength(16)
  })
})

describe('finding words in a text', () => {
  test('needs all of them', () => {
    expect(findWords('one two', ['one', 'two'])).toBe('one two')
    expect(findWords('one two', ['one', 'three'])).toBeUndefined()
  })

  test('shows the text around the first match, on one line', () => {
    const text = `${'before '.repeat(20)}\n\n the   Needle ${'after '.repeat(40)}`
    const snippet = findWords(text, ['after', 'needle'])
    expect(snippet).toMatch(/^….{0,45}before the Needle after .*…$/)
    expect(snippet?.length).toBeLessThan(165)
  })

  test('finds the position even if folding changed the length', () => {
    const text = `${'ﬃ ½ Å '.repeat(3000)}needle here`
    expect(findWords(text, ['needle'])).toMatch(/needle here$/)
  })

  test('does not cut a character in half', () => {
    expect(findWords(`${'🚀'.repeat(50)} needle ${'🚀'.repeat(100)}`, ['needle'])?.isWellFormed()).toBe(true)
  })
})
