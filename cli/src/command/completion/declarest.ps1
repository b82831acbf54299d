# PowerShell completion for declarest: declarest completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName 'declarest' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -le $cursorPosition } |
        ForEach-Object { $_.Extent.Text.Trim('"', "'") })
    if ($wordToComplete -eq '') { $words += '""' }
    $lines = @(& declarest __completeNoDesc @words 2>$null)
    $prefix = if ($wordToComplete -match '^(--[^=]*=)') { $Matches[1] } else { '' }
    $lines | Where-Object { $_ -notmatch '^:\d+$' } | ForEach-Object {
        $text = $prefix + $_
        if ($text -match '\s') { $text = "'" + $text.Replace("'", "''") + "'" }
        [System.Management.Automation.CompletionResult]::new($text, $_, 'ParameterValue', $_)
    }
}
