import { storage } from './server.ts'

/** A choice of this browser; the server has none. */
export const themes = ['system', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const key = 'tapetree-theme'

export function readTheme(): Theme {
  const stored = storage(() => localStorage.getItem(key))
  return themes.find((each) => each === stored) ?? 'system'
}

export function chooseTheme(theme: Theme): void {
  storage(() => localStorage.setItem(key, theme))
  showTheme()
}

export function showTheme(): void {
  const theme = readTheme()
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}
