import type { HLJSApi, LanguageFn } from 'highlight.js'

/** A piece of highlighted code. `scope` is the last part of its CSS class. */
export interface CodePiece {
  text: string
  scope?: string
}

/** Undefined if the language is unknown or the code takes too long to color. Loads the grammar first. */
export async function highlight(code: string, language: string): Promise<CodePiece[] | undefined> {
  const name = languageNamed(language)
  if (name === undefined || code.length > maxCode || longLine.test(code)) return undefined
  try {
    const [{ default: core }, { default: grammar }] = await Promise.all([
      import('highlight.js/lib/core'),
      languages[name](),
    ])
    instance ??= core.newInstance()
    if (!instance.getLanguage(name)) instance.registerLanguage(name, grammar)
    return piecesOf(instance.highlight(code, { language: name, ignoreIllegals: true }).value)
  } catch {
    // Code without colors is still readable.
    return undefined
  }
}

let instance: HLJSApi | undefined

const maxCode = 20_000
/** The time of a grammar is quadratic in the line length. */
const longLine = /.{500}/

function languageNamed(given: string): LanguageName | undefined {
  const [word = ''] = given
    .trim()
    .toLowerCase()
    .split(/[\s,{]/)
  const name = aliases[word] ?? word
  return Object.hasOwn(languages, name) ? (name as LanguageName) : undefined
}

type LanguageName = keyof typeof languages

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
} satisfies Record<string, () => Promise<{ default: LanguageFn }>>

const aliases: Readonly<Record<string, LanguageName>> = {
  sh: 'bash',
  shell: 'bash',
  console: 'bash',
  zsh: 'bash',
  h: 'c',
  'c++': 'cpp',
  cc: 'cpp',
  hpp: 'cpp',
  cs: 'csharp',
  scss: 'css',
  patch: 'diff',
  docker: 'dockerfile',
  golang: 'go',
  toml: 'ini',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  jsonc: 'json',
  jsonl: 'json',
  kt: 'kotlin',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  ts: 'typescript',
  tsx: 'typescript',
  mts: 'typescript',
  html: 'xml',
  svg: 'xml',
  vue: 'xml',
  yml: 'yaml',
}

const markup = /<span class="([^"]*)">|<\/span>|&(?:amp|lt|gt|quot|#x27);|[^<&]+/g
const characters: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#x27;': "'",
}

/** The highlighter returns its own HTML: spans with a class, and escaped special characters. It is read, never inserted. */
export function piecesOf(html: string): CodePiece[] {
  const pieces: CodePiece[] = []
  const scopes: (string | undefined)[] = []
  for (const [piece, classes] of html.matchAll(markup)) {
    if (classes !== undefined) scopes.push(/^hljs-([a-z_]+)/.exec(classes)?.[1] ?? scopes.at(-1))
    else if (piece === '</span>') scopes.pop()
    else {
      const text = characters[piece] ?? piece
      const scope = scopes.at(-1)
      const last = pieces.at(-1)
      if (last && last.scope === scope) last.text += text
      else pieces.push(scope === undefined ? { text } : { text, scope })
    }
  }
  return pieces
}
