import { cp, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type DefaultTheme,
  defineConfig,
  type HeadConfig,
  type MarkdownEnv,
  type MarkdownOptions,
  type MarkdownRenderer,
} from 'vitepress'

const docs = fileURLToPath(new URL('..', import.meta.url))
const repository = 'https://github.com/tapetree/tapetree'
const description = 'A coding agent and a TypeScript runtime whose sessions survive kill -9.'

type Item = DefaultTheme.SidebarItem

/** The readers, in the order of their pages. Each page stands below the first reader who needs it. */
const readers: Item[] = [
  {
    text: 'Use it',
    link: '/use',
    items: [
      page('Installation', '/installation'),
      page('Quickstart', '/quickstart'),
      page('Terminal', '/guides/terminal'),
      page('Web app', '/guides/web-app'),
      page('Editors', '/guides/editors'),
      page('Print mode', '/guides/print-mode'),
      page('Variants', '/guides/variants'),
      page('Sessions', '/guides/sessions'),
      page('Bring your history', '/guides/import'),
      page('Choose a model', '/guides/choose-a-model'),
      page('Tools', '/guides/tools'),
      page('Language servers', '/guides/language-servers'),
      page('Permissions', '/guides/permissions'),
      page('Sandbox', '/guides/sandbox'),
      page('Subagents', '/guides/subagents'),
      page('Secrets', '/guides/secrets'),
      page('Trust', '/guides/trust'),
    ],
  },
  {
    text: 'Host it',
    link: '/host',
    items: [
      page('Run a server', '/guides/run-a-server'),
      page('Server security', '/guides/server-security'),
      page('Behind a proxy', '/guides/behind-a-proxy'),
      page('Sessions in PostgreSQL', '/guides/postgres'),
      page('Run a cluster', '/guides/run-a-cluster'),
      page('Tools on another machine', '/guides/tool-hosts'),
      page('Run your own agent behind tapetree', '/guides/foreign-agents'),
      page('Back up and restore', '/guides/backup-and-restore'),
      page('Upgrade', '/guides/upgrade'),
    ],
  },
  {
    text: 'Embed it',
    link: '/embed',
    items: [
      page('Embed a session', '/guides/embed-a-session'),
      page('Run an agent', '/guides/run-an-agent'),
      page('Connect a client', '/guides/connect-a-client'),
      page('Use any AI SDK model', '/guides/ai-sdk-models'),
      page('Bundle an agent', '/guides/bundle-an-agent'),
      page('Test your agent', '/guides/test-your-agent'),
    ],
  },
  {
    text: 'Extend it',
    link: '/extend',
    items: [
      page('Skills and templates', '/guides/skills-and-templates'),
      page('MCP servers', '/guides/mcp'),
      page('Write a tool', '/guides/write-a-tool'),
      page('Write an extension', '/guides/extensions'),
    ],
  },
  {
    text: 'Contribute',
    link: '/contribute',
    items: [
      page('Architecture', '/architecture'),
      page('Recipes', '/contributing/recipes'),
      page('Release', '/contributing/release'),
      page('Decisions', '/decisions/'),
    ],
  },
]

const reference: Item[] = [
  {
    text: 'Background',
    items: [
      page('Concepts', '/concepts'),
      page('How it works', '/how-it-works'),
      page('What others lose', '/peers'),
      page('Comparison of SDKs', '/reference/comparison'),
      page('Comparison of terminals', '/reference/terminal-comparison'),
      page('Proofs and benches', '/reference/proofs'),
      page('The specification', '/reference/specification'),
      page('Status and platforms', '/reference/platforms'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Commands', '/reference/commands'),
      page('Slash commands and keys', '/reference/slash-commands'),
      page('Exit codes', '/reference/exit-codes'),
      page('Settings', '/reference/settings'),
      page('Models', '/reference/models'),
      page('Runs', '/reference/runs'),
      page('Events', '/reference/events'),
      page('Errors', '/reference/errors'),
      page('REST', '/reference/rest'),
      page('WebSocket', '/reference/websocket'),
      page('Session format', '/reference/session-format'),
      page('Import formats', '/reference/import-formats'),
    ],
  },
  {
    text: 'API',
    items: [
      page('@tapetree/agent', '/reference/agent-api'),
      page('@tapetree/session', '/reference/session-api'),
      page('@tapetree/server', '/reference/server-api'),
      page('@tapetree/client', '/reference/client-api'),
      page('All types (generated)', '/api/'),
    ],
  },
]

export default defineConfig({
  title: 'tapetree',
  description,
  lang: 'en-US',
  srcExclude: ['**/node_modules/**'],
  // Pages name servers on the machine of the reader.
  ignoreDeadLinks: 'localhostLinks',
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/favicon.svg' }] satisfies HeadConfig],
  markdown: {
    // The default themes have too little contrast on the ground of a code block.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: githubSlug },
    config: adaptMarkdown,
  },
  themeConfig: {
    logo: { src: '/favicon.svg', alt: '' },
    nav: readers.map(({ text, link }) => ({ text: text ?? '', link: link ?? '' })),
    sidebar: [...readers.map((reader) => ({ ...reader, collapsed: false })), ...reference],
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: { _render: renderForSearch },
    },
    socialLinks: [{ icon: 'github', link: repository, ariaLabel: 'Source code' }],
    editLink: { pattern: `${repository}/edit/main/docs/:path` },
  },
  transformPageData(data) {
    if (data.relativePath.startsWith('api/')) data.frontmatter['editLink'] = false
    // GitHub shows the same Markdown, so the hero of the home page is not in it.
    if (data.relativePath !== 'index.md') return
    data.frontmatter['sidebar'] = false
    data.frontmatter['aside'] = false
    data.frontmatter['editLink'] = false
  },
  async buildEnd({ outDir, pages }) {
    await writeLlms(outDir, pages)
  },
})

function page(text: string, link: string): Item {
  return { text, link }
}

/** Anchors as GitHub makes them, so that links work in both places. */
function githubSlug(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Mark}\p{Number}\p{Connector_Punctuation} -]/gu, '')
    .replaceAll(' ', '-')
}

type Markdown = Parameters<NonNullable<MarkdownOptions['config']>>[0]

function adaptMarkdown(markdown: Markdown): void {
  leadLinksOutside(markdown)
  leaveEmptyHeadersOut(markdown)
}

/** Screen readers announce a header cell, so a cell without text is none. */
function leaveEmptyHeadersOut(markdown: Markdown): void {
  markdown.core.ruler.push('empty-headers', ({ tokens }) => {
    for (const [index, token] of tokens.entries()) {
      if (token.type !== 'inline' || token.content !== '') continue
      for (const beside of [tokens[index - 1], tokens[index + 1]]) if (beside?.tag === 'th') beside.tag = 'td'
    }
  })
}

/** Relative links to files outside docs lead to the repository, as they do on GitHub. */
function leadLinksOutside(markdown: Markdown): void {
  markdown.core.ruler.push('links-outside', ({ tokens, env }) => {
    const { relativePath } = env as { relativePath?: string }
    const from = relativePath === 'decisions/index.md' ? 'decisions' : dirname(relativePath ?? '')
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (href === null || /^(?:[a-z]+:|\/|#)/i.test(href)) continue
      const [path = '', fragment] = href.split('#')
      const target = posix.join('docs', from, path)
      const hash = fragment === undefined ? '' : `#${fragment}`
      if (!target.startsWith('docs/')) token.attrSet('href', `${repository}/blob/main/${target}${hash}`)
      else if (path.endsWith('decisions/README.md') || (from === 'decisions' && path === 'README.md'))
        token.attrSet('href', `${path.replace('README.md', 'index.md')}${hash}`)
    }
  })
}

/** The index needs no colors, and highlighting every code block twice takes half of the time of a build. */
function renderForSearch(source: string, env: MarkdownEnv, markdown: MarkdownRenderer): string {
  return markdown.render(source.replaceAll(/^(\s*`{3,})\S.*$/gm, '$1txt'), env)
}

/** `llms.txt`, see llmstxt.org: every page with its first sentence, and each page as Markdown beside its HTML. */
async function writeLlms(outDir: string, pages: readonly string[]): Promise<void> {
  const lines = [`# tapetree`, '', `> ${description}`]
  const listed = new Set<string>()
  const add = async (item: Item): Promise<void> => {
    if (item.link === undefined) return
    const source = sourceOf(item.link)
    if (listed.has(source)) return
    listed.add(source)
    lines.push(`- [${item.text}](/${source}): ${firstSentence(await readFile(join(docs, source), 'utf8'))}`)
  }
  for (const group of [...readers, ...reference]) {
    lines.push('', `## ${group.text}`, '')
    await add(group)
    for (const item of group.items ?? []) await add(item)
  }
  await writeFile(join(outDir, 'llms.txt'), `${lines.join('\n')}\n`)
  for (const path of pages) await cp(join(docs, path), join(outDir, path))
  const unlisted = pages.filter((path) => !listed.has(path) && !/^(?:index\.md|api\/|decisions\/)/.test(path))
  if (unlisted.length > 0) throw new Error(`The sidebar in docs/.vitepress/config.ts lacks ${unlisted.join(', ')}`)
}

function sourceOf(link: string): string {
  const path = link.slice(1)
  if (path === 'decisions/') return 'decisions/README.md'
  return path.endsWith('/') ? `${path}index.md` : `${path}.md`
}

function firstSentence(markdown: string): string {
  const paragraph = markdown
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .find((block) => block !== '' && !/^(?:#|-|!\[|\||```|<)/.test(block))
  const text = (paragraph ?? '').replaceAll(/\s+/g, ' ').replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
  return /^.*?\.(?= |$)/.exec(text)?.[0] ?? text
}
