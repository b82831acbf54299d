# PowerShell completion for declarest: declarest completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName 'declarest' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -le $cursorPosition } |
        ForEach-Object { $_.Extent.Text.Trim('"', "'") })
    if ($wordToComplete -eq '') {
        # Before version 7.3, an empty argument of a program is dropped. Since then, quotes are passed as they are.
        $drops = $PSVersionTable.PSVersion -lt [version]'7.3.0' -or $PSNativeCommandArgumentPassing -eq 'Legacy'
        $words += if ($drops) { '""' } else { '' }
    }
    $lines = @(& declarest __completeNoDesc @words 2>$null)
    $prefix = if ($wordToComplete -match '^(--[^=]*=)') { $Matches[1] } else { '' }
    $lines | Where-Object { $_ -notmatch '^:\d+$' } | ForEach-Object {
        $text = $prefix + $_
        # Names of a server must not become code.
        if ($text -notmatch '^[\w/:=.-]+$') {
            $text = "'" + [System.Management.Automation.Language.CodeGeneration]::EscapeSingleQuotedStringContent($text) + "'"
        }
        [System.Management.Automation.CompletionResult]::new($text, $_, 'ParameterValue', $_)
    }
}
