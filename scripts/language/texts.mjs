/** What a line of a page may begin with, each a text of its own: blanks, marks of headings and lists. */
const MARK = /^\s*(?:#+|[-*]|\d+\.|>)\s+/
/** Comments, one after the other of a line each taken together, and strings, with those that are added to them. */
const CODE =
  /\/\*\*?(?<block>[\s\S]*?)\*\/|(?<lines>\/\/ [^\n]*(?:\n\s*\/\/ [^\n]*)*)|(?<string>'(?:[^'\\\n]|\\.)*'(?:\s*\+\s*'(?:[^'\\\n]|\\.)*')*)|`(?<template>[^`]*)`/g
/** Docstrings, and comments as above. */
const SCRIPT = /"""(?<block>[\s\S]*?)"""|(?<=^|\s)(?<lines># [^\n]*(?:\n\s*# [^\n]*)*)/g

/**
 * The texts of a file, each with the line that it begins in: paragraphs and items of pages, comments and strings of code. What
 * stands in code style is left out, and a cell of a table that is not the first begins with dots: the first says of what it is.
 * @param {string} path
 * @param {string} source
 * @returns {{ line: number, text: string }[]}
 */
export function textsOf(path, source) {
  if (path.endsWith('.md')) return textsOfPage(source)
  const texts = []
  let [line, at] = [1, 0]
  for (const match of source.matchAll(/\.[cm]?[jt]s$/.test(path) ? CODE : SCRIPT)) {
    line += source.slice(at, match.index).split('\n').length - 1
    at = match.index
    const { block, lines, string, template } = match.groups
    const said = string?.replace(/'\s*\+\s*'/g, '').slice(1, -1) ?? template ?? block ?? lines
    texts.push({
      line,
      text: plain(string || template ? said : said.replace(/^\s*(?:\/\/|\*|#) ?/gm, '').trimStart()),
    })
  }
  return texts
}

function textsOfPage(source) {
  const texts = []
  let isCode = false
  let isOpen = false
  for (const [index, row] of source.split('\n').entries()) {
    if (/^\s*```/.test(row)) isCode = !isCode
    const isTable = row.startsWith('|')
    const goesOn = isOpen && !MARK.test(row) && !isTable
    isOpen = !isCode && row.trim() !== '' && !/^\s*```/.test(row) && !isTable
    if (isTable) texts.push({ line: index + 1, text: row.slice(1).replaceAll(/ \| /g, ' | … ').trimStart() })
    else if (isOpen && goesOn) texts.at(-1).text += ` ${row.trim()}`
    else if (isOpen) texts.push({ line: index + 1, text: row.replace(MARK, '').trimStart() })
  }
  return texts.map(({ line, text }) => ({ line, text: plain(text) }))
}

function plain(text) {
  return text
    .replace(/`[^`]*`|\$\{[^}]*\}/g, '`…`')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/\s+/g, ' ')
}
