export type ThemeName = 'dark' | 'light' | 'high-contrast'

/** Styles text in one of our colors. The text must be harmless. */
export type Style = (text: string) => string

/** Styles by meaning. Nothing else on the screen knows a color. */
export interface Theme {
  /** Names, the prompt symbol, the selection. */
  accent: Style
  /** Secondary text. */
  muted: Style
  strong: Style
  emphasis: Style
  strike: Style
  success: Style
  warning: Style
  error: Style
  /** The background of user messages. */
  userMessage: Style
  /** The selected line in lists and trees. */
  selected: Style
  border: Style
  heading: Style
  link: Style
  quote: Style
  code: Style
  diffAdded: Style
  diffRemoved: Style
  diffPlace: Style
  /** The number and the sign before an added or removed line, on its background. */
  diffAddedSign: Style
  diffRemovedSign: Style
  /** The background of added and removed lines, and of the changed words in them. */
  diffAddedLine: Style
  diffRemovedLine: Style
  diffAddedWords: Style
  diffRemovedWords: Style
  /** Styles of highlighted code by scope, such as `keyword`. */
  syntax: Readonly<Record<string, Style>>
}

export function themeFor({ theme, color, isTrueColor = false }: Colors): Theme {
  if (!color) return plain
  return isTrueColor ? { ...themes[theme], ...softChanges[theme] } : themes[theme]
}

export interface Colors {
  theme: ThemeName
  color: boolean
  /** Not only the 256 colors of the palette. */
  isTrueColor?: boolean
}

/** GNU screen says what the terminal around it can, and cannot do it itself. */
export function isTrueColor(env: Readonly<Record<string, string | undefined>>): boolean {
  const { COLORTERM: colors = '', STY: screen = '', TERM: terminal = '' } = env
  return screen === '' && (/^(?:truecolor|24bit)$/i.test(colors) || terminal.endsWith('-direct'))
}

type Code = readonly [open: string, close: string]

const foreground = (color: string): Code => [`38;5;${color}`, '39']
const background = (color: string): Code => [`48;5;${color}`, '49']
const exactBackground = (red: number, green: number, blue: number): Code => [`48;2;${red};${green};${blue}`, '49']
const bold: Code = ['1', '22']
const italic: Code = ['3', '23']
const underline: Code = ['4', '24']
const inverse: Code = ['7', '27']
const struck: Code = ['9', '29']

function styled(...codes: readonly Code[]): Style {
  const open = `\u001b[${codes.map(([code]) => code).join(';')}m`
  const close = `\u001b[${codes.map(([, code]) => code).join(';')}m`
  return (text) => (text === '' ? '' : `${open}${text}${close}`)
}

function syntaxOf(colors: Record<string, string>): Record<string, Style> {
  return Object.fromEntries(Object.entries(colors).map(([scope, color]) => [scope, styled(foreground(color))]))
}

const dark: Theme = {
  accent: styled(foreground('111')),
  muted: styled(foreground('245')),
  strong: styled(bold),
  emphasis: styled(italic),
  strike: styled(struck),
  success: styled(foreground('114')),
  warning: styled(foreground('221')),
  error: styled(foreground('210')),
  userMessage: styled(background('236')),
  selected: styled(background('238'), bold),
  border: styled(foreground('240')),
  heading: styled(bold, foreground('111')),
  link: styled(underline, foreground('111')),
  quote: styled(italic, foreground('250')),
  code: styled(foreground('180')),
  diffAdded: styled(foreground('114')),
  diffRemoved: styled(foreground('210')),
  diffPlace: styled(foreground('111')),
  // The palette has no soft green or red: only the sign and the changed words are on one.
  diffAddedSign: styled(foreground('114'), background('22')),
  diffRemovedSign: styled(foreground('210'), background('52')),
  diffAddedLine: styled(background('235')),
  diffRemovedLine: styled(background('235')),
  diffAddedWords: styled(background('22')),
  diffRemovedWords: styled(background('52')),
  syntax: syntaxOf({
    keyword: '176',
    built_in: '180',
    type: '180',
    literal: '180',
    number: '180',
    string: '114',
    regexp: '114',
    comment: '245',
    title: '111',
    attr: '111',
    attribute: '111',
    variable: '252',
    meta: '245',
    addition: '114',
    deletion: '210',
  }),
}

const light: Theme = {
  ...dark,
  accent: styled(foreground('25')),
  muted: styled(foreground('241')),
  success: styled(foreground('22')),
  warning: styled(foreground('94')),
  error: styled(foreground('124')),
  userMessage: styled(background('254')),
  selected: styled(background('252'), bold),
  border: styled(foreground('246')),
  heading: styled(bold, foreground('25')),
  link: styled(underline, foreground('25')),
  quote: styled(italic, foreground('238')),
  code: styled(foreground('88')),
  diffAdded: styled(foreground('22')),
  diffRemoved: styled(foreground('124')),
  diffPlace: styled(foreground('25')),
  diffAddedSign: styled(foreground('22')),
  diffRemovedSign: styled(foreground('124')),
  diffAddedLine: styled(background('194')),
  diffRemovedLine: styled(background('224')),
  diffAddedWords: styled(background('157')),
  diffRemovedWords: styled(background('217')),
  syntax: syntaxOf({
    keyword: '90',
    built_in: '88',
    type: '88',
    literal: '88',
    number: '88',
    string: '22',
    regexp: '22',
    comment: '241',
    title: '25',
    attr: '25',
    attribute: '25',
    variable: '236',
    meta: '241',
    addition: '22',
    deletion: '124',
  }),
}

/** Only the terminal's own 16 colors, and nothing dimmed. */
const highContrast: Theme = {
  ...dark,
  accent: styled(bold, ['96', '39']),
  muted: (text) => text,
  success: styled(bold, ['92', '39']),
  warning: styled(bold, ['93', '39']),
  error: styled(bold, ['91', '39']),
  userMessage: styled(bold),
  selected: styled(inverse),
  border: (text) => text,
  heading: styled(bold, underline),
  link: styled(underline),
  quote: styled(italic),
  code: styled(['93', '39']),
  diffAdded: styled(bold, ['92', '39']),
  diffRemoved: styled(bold, ['91', '39']),
  diffPlace: styled(['96', '39']),
  diffAddedSign: styled(bold, ['92', '39']),
  diffRemovedSign: styled(bold, ['91', '39']),
  diffAddedLine: styled(['92', '39']),
  diffRemovedLine: styled(['91', '39']),
  diffAddedWords: styled(['92', '39'], inverse),
  diffRemovedWords: styled(['91', '39'], inverse),
  syntax: { comment: styled(italic), keyword: styled(bold), string: styled(['92', '39']) },
}

const none: Style = (text) => text

/** Without color; a marker still shows the selection. */
const plain: Theme = {
  accent: none,
  muted: none,
  strong: none,
  emphasis: none,
  strike: none,
  success: none,
  warning: none,
  error: none,
  userMessage: none,
  selected: none,
  border: none,
  heading: none,
  link: none,
  quote: none,
  code: none,
  diffAdded: none,
  diffRemoved: none,
  diffPlace: none,
  diffAddedSign: none,
  diffRemovedSign: none,
  diffAddedLine: none,
  diffRemovedLine: none,
  diffAddedWords: none,
  diffRemovedWords: none,
  syntax: {},
}

const themes: Record<ThemeName, Theme> = { dark, light, 'high-contrast': highContrast }

/** What 24-bit color makes softer. */
const softChanges: Record<ThemeName, Partial<Theme>> = {
  dark: {
    diffAddedSign: dark.diffAdded,
    diffRemovedSign: dark.diffRemoved,
    diffAddedLine: styled(exactBackground(30, 50, 38)),
    diffRemovedLine: styled(exactBackground(60, 34, 36)),
    diffAddedWords: styled(exactBackground(44, 86, 59)),
    diffRemovedWords: styled(exactBackground(107, 50, 54)),
  },
  light: {
    diffAddedLine: styled(exactBackground(230, 255, 236)),
    diffRemovedLine: styled(exactBackground(255, 235, 233)),
    diffAddedWords: styled(exactBackground(180, 240, 195)),
    diffRemovedWords: styled(exactBackground(255, 200, 197)),
  },
  'high-contrast': {},
}

export const themeNames = Object.keys(themes) as readonly ThemeName[]

export function isThemeName(name: string): name is ThemeName {
  return Object.hasOwn(themes, name)
}
