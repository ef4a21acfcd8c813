import { codeLanguage, codePieces, longCodeLine, type CodeLanguage, type CodePiece } from '@tapetree/session/screen'
import type { HLJSApi, LanguageFn } from 'highlight.js'

/** Undefined if the language is unknown or the code takes too long to color. Loads the grammar first. */
export async function highlight(code: string, language: string): Promise<CodePiece[] | undefined> {
  const name = codeLanguage(language)
  if (name === undefined || code.length > maxCode || longCodeLine.test(code)) return undefined
  try {
    const [{ default: core }, { default: grammar }] = await Promise.all([
      import('highlight.js/lib/core'),
      languages[name](),
    ])
    instance ??= core.newInstance()
    if (!instance.getLanguage(name)) instance.registerLanguage(name, grammar)
    return codePieces(instance.highlight(code, { language: name, ignoreIllegals: true }).value)
  } catch {
    // Code without colors is still readable.
    return undefined
  }
}

let instance: HLJSApi | undefined

const maxCode = 20_000

const languages = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  dockerfile: () => import('highlight.js/lib/languages/dockerfile'),
  go: () => import('highlight.js/lib/languages/go'),
  ini: () => import('highlight.js/lib/languages/ini'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
} satisfies Record<CodeLanguage, () => Promise<{ default: LanguageFn }>>
