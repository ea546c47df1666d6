export function textsOf(path: string, source: string): { line: number; text: string }[]
