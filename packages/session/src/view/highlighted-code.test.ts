import { expect, test } from 'vitest'
import { codeLanguage, codePieces } from './highlighted-code.ts'

test('the words after a fence name a language by its name or by an alias', () => {
  expect(['ts', 'TypeScript', 'js {1,3}', 'sh,ignore', ' yml '].map(codeLanguage)).toEqual([
    'typescript',
    'typescript',
    'javascript',
    'bash',
    'yaml',
  ])
})

test('unknown words, and names of properties of objects, are no language', () => {
  expect(['', 'cobol', 'constructor', '__proto__', 'toString'].map(codeLanguage)).toEqual(
    Array.from({ length: 5 }, () => undefined),
  )
})

test('highlighted code is read into pieces', () => {
  expect(
    codePieces(
      '<span class="hljs-keyword">const</span> a = <span class="hljs-string">&quot;&lt;b&gt; &amp; &#x27;&quot;</span>',
    ),
  ).toEqual([{ text: 'const', scope: 'keyword' }, { text: ' a = ' }, { text: '"<b> & \'"', scope: 'string' }])
})

test('a scope of several words is read as a whole', () => {
  expect(codePieces('<span class="hljs-selector-tag">a</span><span class="hljs-title function_">b</span>')).toEqual([
    { text: 'a', scope: 'selector-tag' },
    { text: 'b', scope: 'title' },
  ])
})

test('an unknown scope has the scope around it', () => {
  const html = '<span class="hljs-string">a<span class="hljs-subst">b</span>c</span>'
  expect(codePieces(html, (scope) => scope === 'string')).toEqual([{ text: 'abc', scope: 'string' }])
})
